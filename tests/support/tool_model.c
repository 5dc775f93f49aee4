// SPDX-License-Identifier: MIT
// The template and the scripts of the model with tools.
#include "support/tool_model.h"

#include "support/scripted_model.h"
#include "support/support.h"

// The user's last message is the name of a script; after a tool's result a script of its own follows.
static const char chat_template[] =
    "{% if tools %}tools: {{ tools | tojson }}\n{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}.\n{% endfor %}{% if add_generation_prompt "
    "%}[assistant]"
    "{{ '<|after|>' if messages[-1].role == 'tool' else {'weather': '<|weather|>', 'two': '<|two|>', 'bad': '<|bad|>', "
    "'five': '<|five|>', 'json': '<|json|>'}"
    ".get(messages[-1].content, messages[-1].content) }}{% endif %}";

static const script scripts[] = {
    {"<|weather|>",
     {"<think>\n", "Hm", ", weather.", "\n</think>\n\n", "Let me ", "look.", "\n<tool_call>\n",
      "{\"name\": \"get_weather\", ", "\"arguments\": {\"city\": ", "\"Paris\"}}", "\n</tool_call>"}},
    {"<|after|>", {"It is ", "21 degrees."}},
    {"<|two|>",
     {"<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n",
      "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2}}</tool_call>"}},
    {"<|bad|>", {"<tool_call>{\"name\": ", "oops}</tool_call>"}},
    {"<|five|>", {"<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": ", "5}}</tool_call>"}},
    {"<|json|>", {"{\"a\": ", "5}"}},
};

void tool_model(const char *path)
{
    scripted_model(path, chat_template, scripts, FRIT_COUNT(scripts));
}
