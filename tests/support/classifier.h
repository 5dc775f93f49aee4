// SPDX-License-Identifier: MIT
// support/classifier.h: the golden BERT as a classifier: its pooler, and a head whose numbers the test knows.
#pragma once

enum { CLASSIFIER_WIDTH = 64 };   // of its hidden states

// Writes the folder and fills the head's numbers. malloc'd: its path.
char *make_classifier(const char *name, int n_labels, float (*out)[CLASSIFIER_WIDTH], float *bias);
