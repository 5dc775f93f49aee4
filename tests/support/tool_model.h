// SPDX-License-Identifier: MIT
// support/tool_model.h: a scripted model whose template has tools and reasoning, for tests of the server.
//
//     the user says    the model answers
//     weather          <think>Hm, weather.</think> Let me look. get_weather {"city": "Paris"}
//     (a result)       It is 21 degrees.
//     two              add {"a": 1}, add {"a": 2}
//     bad              a call that is not JSON
//     five             add {"a": 5}
//     json             {"a": 5}
#pragma once

void tool_model(const char *path);
