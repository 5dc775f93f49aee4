// SPDX-License-Identifier: MIT
// The tests of `x is ...`.
#include "text/template/node.h"

static frit_status is_defined(run *r, value v, const call *c, bool *out)
{
    (void)r, (void)c;
    *out = v.type != VALUE_UNDEFINED && v.type != VALUE_FORBIDDEN;
    return FRIT_OK;
}

static frit_status is_undefined(run *r, value v, const call *c, bool *out)
{
    FRIT_TRY(is_defined(r, v, c, out));
    *out = !*out;
    return FRIT_OK;
}

#define TYPE_TEST(name, condition)                                     \
    static frit_status name(run *r, value v, const call *c, bool *out) \
    {                                                                  \
        (void)r, (void)c;                                              \
        *out = (condition);                                            \
        return FRIT_OK;                                                \
    }
TYPE_TEST(is_none, v.type == VALUE_NONE)
TYPE_TEST(is_string, v.type == VALUE_TEXT)
TYPE_TEST(is_mapping, v.type == VALUE_DICT)
TYPE_TEST(is_number, frit_var_is_number(v))
TYPE_TEST(is_integer, v.type == VALUE_INT)
TYPE_TEST(is_float, v.type == VALUE_FLOAT)
TYPE_TEST(is_boolean, v.type == VALUE_BOOL)
TYPE_TEST(is_true, v.type == VALUE_BOOL && v.b)
TYPE_TEST(is_false, v.type == VALUE_BOOL && !v.b)
TYPE_TEST(is_escaped, v.type == VALUE_TEXT && v.safe)
TYPE_TEST(is_callable, v.type == VALUE_MACRO || v.type == VALUE_METHOD || v.type == VALUE_FUNCTION)
TYPE_TEST(is_iterable, v.type == VALUE_TEXT || v.type == VALUE_DICT || frit_var_is_list(v) || v.type == VALUE_UNDEFINED)
TYPE_TEST(is_sequence, v.type == VALUE_TEXT || v.type == VALUE_DICT || v.type == VALUE_LIST || v.type == VALUE_TUPLE ||
                           v.type == VALUE_UNDEFINED)

// True as in Python: the case `same` changes nothing, and the case `other` changes something.
static frit_status is_cased(run *r, value v, int same, int other, bool *out)
{
    value text, cased;
    bool caseless = false;
    FRIT_TRY(frit_var_to_text(r, v, &text));
    FRIT_TRY(frit_text_case(r, text.text, same, &cased));
    FRIT_TRY(frit_var_equal(r, text, cased, out));
    FRIT_TRY(frit_text_case(r, text.text, other, &cased));
    FRIT_TRY(frit_var_equal(r, text, cased, &caseless));
    *out = *out && !caseless;
    return FRIT_OK;
}

static frit_status is_lower(run *r, value v, const call *c, bool *out)
{
    (void)c;
    return is_cased(r, v, CASE_LOWER, CASE_UPPER, out);
}

static frit_status is_upper(run *r, value v, const call *c, bool *out)
{
    (void)c;
    return is_cased(r, v, CASE_UPPER, CASE_LOWER, out);
}

// Tests v % by == rest.
static frit_status leaves(run *r, value v, value by, int64_t rest, bool *out)
{
    value result;
    if (!frit_var_is_number(v) || !frit_var_is_number(by))
        return frit_run_fail(r, "a number is expected, not %s", frit_var_type_name(v));
    FRIT_TRY(frit_eval_binary(r, OP_MOD, v, by, &result));
    return frit_var_equal(r, result, frit_var_int(rest), out);
}

static frit_status is_even(run *r, value v, const call *c, bool *out)
{
    (void)c;
    return leaves(r, v, frit_var_int(2), 0, out);
}

static frit_status is_odd(run *r, value v, const call *c, bool *out)
{
    (void)c;
    return leaves(r, v, frit_var_int(2), 1, out);
}

static frit_status is_divisible_by(run *r, value v, const call *c, bool *out)
{
    value by;
    if (!frit_call_argument(c, 0, "num", &by)) return frit_run_fail(r, "the test 'divisibleby' takes a number");
    return leaves(r, v, by, 0, out);
}

static frit_status compare(run *r, operator_kind op, value v, const call *c, bool *out)
{
    if (c->n != 1) return frit_run_fail(r, "a comparison takes one argument");
    return frit_eval_compare(r, op, v, c->positional[0], out);
}

#define COMPARISON(name, op)                                           \
    static frit_status name(run *r, value v, const call *c, bool *out) \
    {                                                                  \
        return compare(r, op, v, c, out);                              \
    }
COMPARISON(is_eq, OP_EQ)
COMPARISON(is_ne, OP_NE)
COMPARISON(is_lt, OP_LT)
COMPARISON(is_le, OP_LE)
COMPARISON(is_gt, OP_GT)
COMPARISON(is_ge, OP_GE)
COMPARISON(is_in, OP_IN)

static frit_status is_same(run *r, value v, const call *c, bool *out)
{
    if (c->n != 1) return frit_run_fail(r, "the test 'sameas' takes one argument");
    value other = c->positional[0];
    bool scalar = v.type == VALUE_NONE || v.type == VALUE_BOOL || v.type == VALUE_INT || v.type == VALUE_TEXT;
    if (v.type != other.type)
        *out = false;
    else if (scalar)
        return frit_var_equal(r, v, other, out);
    else
        *out = v.list == other.list;
    return FRIT_OK;
}

static frit_status is_filter(run *r, value v, const call *c, bool *out)
{
    (void)r, (void)c;
    *out = v.type == VALUE_TEXT && frit_filter_find(v.text) != NULL;
    return FRIT_OK;
}

static frit_status is_test(run *r, value v, const call *c, bool *out)
{
    (void)r, (void)c;
    *out = v.type == VALUE_TEXT && frit_test_find(v.text) != NULL;
    return FRIT_OK;
}

static const test tests[] = {
    {"defined", is_defined, 0},
    {"undefined", is_undefined, 0},
    {"none", is_none, 0},
    {"string", is_string, 0},
    {"mapping", is_mapping, 0},
    {"iterable", is_iterable, 0},
    {"sequence", is_sequence, 0},
    {"number", is_number, 0},
    {"integer", is_integer, 0},
    {"float", is_float, 0},
    {"boolean", is_boolean, 0},
    {"true", is_true, 0},
    {"false", is_false, 0},
    {"escaped", is_escaped, 0},
    {"callable", is_callable, 0},
    {"lower", is_lower, 0},
    {"upper", is_upper, 0},
    {"even", is_even, 0},
    {"odd", is_odd, 0},
    {"divisibleby", is_divisible_by, 1},
    {"sameas", is_same, 1},
    {"filter", is_filter, 0},
    {"test", is_test, 0},
    {"in", is_in, 1},
    {"eq", is_eq, 1},
    {"equalto", is_eq, 1},
    {"==", is_eq, 1},
    {"ne", is_ne, 1},
    {"!=", is_ne, 1},
    {"lt", is_lt, 1},
    {"lessthan", is_lt, 1},
    {"<", is_lt, 1},
    {"le", is_le, 1},
    {"<=", is_le, 1},
    {"gt", is_gt, 1},
    {"greaterthan", is_gt, 1},
    {">", is_gt, 1},
    {"ge", is_ge, 1},
    {">=", is_ge, 1},
};

const test *frit_test_find(frit_str name)
{
    for (size_t i = 0; i < FRIT_COUNT(tests); i++)
        if (frit_str_is(name, tests[i].name)) return &tests[i];
    return NULL;
}
