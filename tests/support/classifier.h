// SPDX-License-Identifier: MIT
// support/classifier.h: the golden BERT as a classifier: its pooler, and a classifier with known numbers.
#pragma once

enum { CLASSIFIER_WIDTH = 64 };   // of its hidden states

// Writes the folder and sets the classifier's numbers. Returns its path, malloc'd.
char *make_classifier(const char *name, int n_labels, float (*out)[CLASSIFIER_WIDTH], float *bias);
