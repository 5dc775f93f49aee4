#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles grammars of many families and growing sizes that are made to need much time or memory, and prints the worst.

    tests/grammar/bombs.py build/release/tests/test_grammar_bomb [--random N] [--seed S] [--all]

Each grammar is compiled in a process of its own, `test_grammar_bomb --compile KIND FILE`, which prints steps, seconds
and bytes."""
import argparse, json, os, random, subprocess, sys, tempfile

NAMES = [2, 6, 20, 60, 100, 256, 257, 1000, 4000, 20000, 60000]
FEW = [2, 4, 8, 12, 16, 20, 40, 80, 160, 300, 1000]


def prop(i, kind="integer"):
    return {"p%d" % i: {"type": kind}}


def nest(n, make, end):
    for _ in range(n):
        end = make(end)
    return end


def merged(n, of):
    out = {}
    for i in range(n):
        out.update(of(i))
    return out


def if_then(i):
    return {"if": {"properties": {"a": {"const": i}}, "required": ["a"]},
            "then": {"properties": {"b": {"const": i}}}}


def web(n, keyword, width=2, wrap=lambda x: x):
    defs = {"d%d" % i: wrap({keyword: [{"$ref": "#/$defs/d%d" % (i + 1)}] * width}) for i in range(n)}
    defs["d%d" % n] = {"type": "object", "properties": {"x": {"type": "string"}}}
    return {"$ref": "#/$defs/d0", "$defs": defs}


def full_web(n, keyword):
    """Returns a schema in which every definition refers to all later ones."""
    defs = {"d%d" % i: {keyword: [{"$ref": "#/$defs/d%d" % k} for k in range(i + 1, n)] or [{"type": "null"}]}
            for i in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": defs}


def combined(n, keywords):
    """Returns n combinations in each other, each with a name of its own."""
    x = {"type": "object", "properties": {"a": {"type": "string"}}}
    for i in range(n):
        x = {keywords[i % len(keywords)]: [x, {"required": ["k%d" % i]}]}
    return x


def circle(n, make):
    """Returns n definitions that each refer to the next one and to another one."""
    refs = [{"$ref": "#/$defs/d%d" % i} for i in range(n)]
    return {"$ref": "#/$defs/d0", "$defs": {
        "d%d" % i: make(refs[(i + 1) % n], refs[(i * 7 + 3) % n]) for i in range(n)}}


FAMILIES = {
    "properties": (NAMES, lambda n: {"type": "object", "properties": merged(n, prop)}),
    "properties of strings, closed": (NAMES, lambda n: {
        "type": "object", "properties": merged(n, lambda i: prop(i, "string")), "additionalProperties": False}),
    "required": (NAMES, lambda n: {"required": ["p%d" % i for i in range(n)]}),
    "all required": (NAMES, lambda n: {"properties": merged(n, prop), "required": ["p%d" % i for i in range(n)]}),
    "long names": ([10, 100, 256], lambda n: {"properties": {"%d" % i + "x" * 15000: {} for i in range(n)}}),
    "long names, again and again": ([10, 20, 40], lambda n: {"$ref": "#/$defs/d0", "$defs": dict(
        web(n, "allOf")["$defs"], **{"d%d" % n: {"required": ["x" * 3000000]}})}),
    "long lists, again and again": ([10, 20, 40], lambda n: {"$ref": "#/$defs/d0", "$defs": dict(
        web(n, "anyOf")["$defs"], **{"d%d" % n: {"anyOf": [False] * 400000}})}),
    "long types, again and again": ([10, 20, 40], lambda n: {"$ref": "#/$defs/d0", "$defs": dict(
        web(n, "allOf")["$defs"], **{"d%d" % n: {"type": ["object"] * 64, "enum": [1] * 1000000}})}),
    "names and patterns": ([10, 60, 250], lambda n: {"required": ["x" * 4000 + "%d" % i for i in range(n)],
        "patternProperties": {"x{%d}" % i: {"minimum": i} for i in range(30)}}),
    "one long name": ([1000, 100000, 4000000], lambda n: {"properties": {"x" * n: {}}}),
    "allOf of properties": (NAMES, lambda n: {"allOf": [{"properties": prop(i)} for i in range(n)]}),
    "allOf of the same": (NAMES, lambda n: {"allOf": [{"properties": merged(50, prop), "required": ["p1"]}] * n}),
    "allOf of required": (NAMES, lambda n: {"allOf": [{"required": ["p%d" % i]} for i in range(n)]}),
    "allOf of if and then": (FEW, lambda n: {"allOf": [if_then(i) for i in range(n)]}),
    "allOf of if and then, others": (FEW, lambda n: {"allOf": [
        {"if": {"required": ["a%d" % i]}, "then": {"required": ["b%d" % i]}} for i in range(n)]}),
    "allOf of if, then, else": (FEW, lambda n: {"allOf": [
        dict(if_then(i), **{"else": {"properties": {"c%d" % i: {"type": "string"}}}}) for i in range(n)]}),
    "if nested": ([2, 8, 20, 60, 190], lambda n: nest(n, lambda x: {
        "if": {"required": ["a"]}, "then": {"properties": {"b": {"type": "string"}}}, "else": x}, {})),
    "anyOf of objects": (FEW, lambda n: {"anyOf": [{"properties": merged(20, lambda k: prop(i * 20 + k))} for i in range(n)]}),
    "oneOf of objects": (FEW, lambda n: {"oneOf": [
        {"properties": dict(prop(1), kind={"const": i}), "required": ["kind"]} for i in range(n)]}),
    "oneOf of large objects": (FEW, lambda n: {"oneOf": [
        {"properties": dict(merged(100, prop), kind={"const": "k%d" % i}),
         "required": ["kind"] + ["p%d" % k for k in range(100)]} for i in range(n)]}),
    "oneOf that overlap": (FEW, lambda n: {"oneOf": [{"required": ["a%d" % i]} for i in range(n)]}),
    "not anyOf": (FEW, lambda n: {"not": {"anyOf": [{"required": ["a%d" % i]} for i in range(n)]}}),
    "not allOf": (FEW, lambda n: {"not": {"allOf": [{"required": ["a%d" % i, "b"]} for i in range(n)]}}),
    "not nested": ([2, 8, 20, 60, 190], lambda n: nest(n, lambda x: {"not": x}, {"properties": prop(1), "required": ["a", "b"]})),
    "products of anyOf": (FEW, lambda n: {"allOf": [
        {"anyOf": [{"required": ["a%d" % i]}, {"required": ["b%d" % i]}]} for i in range(n)]}),
    "products of oneOf": (FEW, lambda n: {"allOf": [
        {"oneOf": [{"required": ["a%d" % i]}, {"required": ["b%d" % i]}]} for i in range(n)]}),
    "products of types": (FEW, lambda n: {"allOf": [
        {"anyOf": [{"properties": {"a": {"minimum": i}}}, {"properties": {"b": {"maximum": i}}}]} for i in range(n)]}),
    "products of arrays": (FEW, lambda n: {"type": "array", "allOf": [
        {"anyOf": [{"minItems": i}, {"items": {"minimum": i}}]} for i in range(n)]}),
    "contains": ([1, 2, 3, 4, 8, 9, 20], lambda n: {"type": "array", "allOf": [
        {"contains": {"const": i}, "minContains": 50, "maxContains": 100} for i in range(n)]}),
    "contains, few": ([1, 2, 4, 8], lambda n: {"type": "array", "allOf": [
        {"contains": {"const": i}, "minContains": 2, "maxContains": 3} for i in range(n)]}),
    "contains, any number": ([1, 2, 4, 8], lambda n: {"type": "array", "allOf": [
        {"contains": {"minimum": i}, "minContains": 4} for i in range(n)]}),
    "contains and prefix": ([10, 100, 1000, 10000, 60000], lambda n: {"type": "array", "minItems": n,
        "allOf": [{"contains": {"const": i}} for i in range(8)]}),
    "contains of objects": ([1, 2, 4, 8], lambda n: {"type": "array", "allOf": [
        {"contains": {"required": ["a%d" % i]}, "maxContains": 9} for i in range(n)]}),
    "one contains": ([100, 10000, 59999, 100000, 999999], lambda n: {"contains": {"const": 1}, "minContains": n}),
    "minItems": ([100, 10000, 59999, 60001, 999999], lambda n: {"type": "array", "minItems": n, "items": {"type": "integer"}}),
    "maxItems": ([100, 10000, 59999, 60001, 999999], lambda n: {"type": "array", "maxItems": n, "items": {"type": "string"}}),
    "maxItems, many": ([10, 100, 1000, 10000], lambda n: {"properties": {
        "p%d" % i: {"type": "array", "items": {"type": "integer"}, "maxItems": n + i} for i in range(100)}}),
    "prefixItems": (NAMES, lambda n: {"type": "array", "prefixItems": [{"const": i} for i in range(n)]}),
    "prefixItems of true": ([1000, 59999, 119999, 700000], lambda n: {"type": "array", "prefixItems": [True] * n}),
    "prefixItems of objects": ([1000, 59999, 119999, 700000], lambda n: {"type": "array", "prefixItems": [{}] * n}),
    "items nested": ([10, 100, 180, 250], lambda n: nest(n, lambda x: {"type": "array", "items": x}, {"type": "string"})),
    "items nested with counts": ([2, 10, 50], lambda n: nest(n, lambda x: {"type": "array", "items": x, "maxItems": 2000}, {"type": "string"})),
    "tuples": (NAMES, lambda n: {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"const": i} for i in range(n)]}),
    "patternProperties": (FEW, lambda n: {"patternProperties": {"^a%d" % i: {"type": "integer"} for i in range(n)}}),
    "patternProperties that overlap": (FEW, lambda n: {"patternProperties": {"a.*b%d" % i: {"minimum": i} for i in range(n)}}),
    "patternProperties of counts": (FEW, lambda n: {"patternProperties": {"^(a|b)*a(a|b){%d}$" % i: {} for i in range(n)}}),
    "propertyNames": (FEW, lambda n: {"allOf": [{"propertyNames": {"pattern": "a.{%d}b" % i}} for i in range(n)]}),
    "minProperties": ([10, 1000, 59999, 999999], lambda n: {"type": "object", "minProperties": n}),
    "maxProperties with names": ([10, 100, 1000, 100000], lambda n: {
        "properties": merged(200, prop), "maxProperties": n, "additionalProperties": {"type": "null"}}),
    "dependentRequired": (FEW, lambda n: {"dependentRequired": {"a%d" % i: ["b%d" % i] for i in range(n)}}),
    "dependentSchemas": (FEW, lambda n: {"dependentSchemas": {"a%d" % i: {"required": ["b%d" % i]} for i in range(n)}}),
    "dependencies": (FEW, lambda n: {"$schema": "http://json-schema.org/draft-07/schema#",
                                     "dependencies": {"a%d" % i: ["b%d" % i] for i in range(n)}}),
    "unevaluatedProperties": (FEW, lambda n: {"allOf": [{"anyOf": [
        {"properties": prop(2 * i)}, {"properties": prop(2 * i + 1)}]} for i in range(n)], "unevaluatedProperties": False}),
    "unevaluatedItems": (FEW, lambda n: {"anyOf": [{"prefixItems": [True] * i} for i in range(n)], "unevaluatedItems": False}),
    "enum of strings": ([100, 10000, 100000, 300000], lambda n: {"enum": ["v%d" % (i * 7919 % n) for i in range(n)]}),
    "enum of integers": ([100, 1000, 10000, 100000, 500000], lambda n: {"enum": list(range(n))}),
    "enum of numbers": ([100, 1000, 10000, 100000], lambda n: {"enum": [i * 1.37e-5 for i in range(n)]}),
    "enum of large numbers": ([100, 1000, 10000, 100000], lambda n: {"enum": [i * 1e300 for i in range(n)]}),
    "enum of objects": ([100, 1000, 5000, 50000], lambda n: {"enum": [{"a": i, "b": [i]} for i in range(n)]}),
    "enum of long strings": ([1, 10, 1000], lambda n: {"enum": ["%d" % i + "x" * (4000000 // n) for i in range(n)]}),
    "not enum": ([100, 1000, 10000, 100000], lambda n: {"type": "string", "not": {"enum": ["v%d" % i for i in range(n)]}}),
    "not enum of objects": ([2, 5, 10, 100, 1000], lambda n: {"not": {"enum": [{"a": i, "b": i} for i in range(n)]}}),
    "const, large": ([100, 1000, 10000, 100000], lambda n: {"const": list(range(n))}),
    "const, object": ([100, 256, 1000, 100000], lambda n: {"const": {"p%d" % i: i for i in range(n)}}),
    "const, deep": ([100, 1000, 2000], lambda n: {"const": nest(n, lambda x: [x], 1)}),
    "anyOf of const": ([100, 1000, 4000, 10000, 50000], lambda n: {"anyOf": [{"const": "v%d" % i} for i in range(n)]}),
    "oneOf of const": ([100, 1000, 4000, 10000, 50000], lambda n: {"oneOf": [{"const": i} for i in range(n)]}),
    "anyOf of patterns": (FEW, lambda n: {"type": "string", "anyOf": [{"pattern": "a.*b%d" % i} for i in range(n)]}),
    "allOf of patterns": (FEW, lambda n: {"type": "string", "allOf": [{"pattern": "a.{%d}b" % i} for i in range(n)]}),
    "allOf of cycles": (FEW, lambda n: {"type": "string", "allOf": [{"pattern": "^(a{%d})*$" % (i + 2)} for i in range(n)]}),
    "oneOf of patterns": (FEW, lambda n: {"type": "string", "oneOf": [{"pattern": "a.{%d}b" % i} for i in range(n)]}),
    "pattern of a subset": ([5, 10, 15, 16, 17, 18, 40], lambda n: {"type": "string", "pattern": "^[ab]*a[ab]{%d}$" % n}),
    "patterns of subsets": (FEW, lambda n: {"properties": {
        "p%d" % i: {"type": "string", "pattern": "^[ab]*a[ab]{12}%d$" % i} for i in range(n)}}),
    "pattern of repeats": ([10, 100, 1000, 10000], lambda n: {"type": "string", "pattern": "^(a|bc|[d-f]{1,9}){%d}$" % n}),
    "patterns of repeats": (FEW, lambda n: {"properties": {
        "p%d" % i: {"type": "string", "pattern": "^[a-z]{1,%d}$" % (5000 + i)} for i in range(n)}}),
    "patterns of dots": (FEW, lambda n: {"properties": {
        "p%d" % i: {"type": "string", "pattern": "^.{1,%d}$" % (900 + i)} for i in range(n)}}),
    "patterns of letters": (FEW, lambda n: {"properties": {
        "p%d" % i: {"type": "string", "pattern": "^\\p{L}+%d$" % i} for i in range(n)}}),
    "pattern of letters": ([1, 10, 100, 1000, 10000], lambda n: {"type": "string", "pattern": "\\p{L}\\p{Lu}" * n}),
    "pattern of classes": ([100, 10000, 100000], lambda n: {"type": "string", "pattern": "[^a-z0-9]" * n}),
    "pattern, a large class": ([100, 10000, 60000], lambda n: {"type": "string", "pattern": "[%s]" % "".join(
        chr(0x3400 + 2 * i % 20000) for i in range(n))}),
    "pattern of alternatives": ([100, 10000, 100000], lambda n: {"type": "string", "pattern": "|".join("w%d" % i for i in range(n))}),
    "pattern of lazy text": ([10, 100, 1000], lambda n: {"type": "string", "pattern": ".*x" * n}),
    "formats": (FEW, lambda n: {"properties": {"p%d" % i: {"type": "string", "format": "uri", "maxLength": 50 + i} for i in range(n)}}),
    "formats and patterns": (FEW, lambda n: {"type": "string", "format": "email", "allOf": [{"pattern": "%d" % i} for i in range(n)]}),
    "maxLength": (NAMES, lambda n: {"anyOf": [{"type": "string", "minLength": i, "maxLength": 2 * i} for i in range(n)]}),
    "maxLength in properties": (NAMES, lambda n: {"properties": {"p%d" % i: {"maxLength": i * 3, "minLength": i} for i in range(n)}}),
    "maxLength with pattern": ([10, 100, 1000, 10000, 50000], lambda n: {"type": "string", "maxLength": n, "pattern": "a.*b"}),
    "maxLength with not": ([10, 100, 1000, 10000, 50000], lambda n: {"type": "string", "maxLength": n, "not": {"const": "a"}}),
    "multipleOf": ([2, 7, 97, 997, 3989], lambda n: {"multipleOf": n}),
    "multipleOf of a fraction": ([1, 5, 10, 15, 20], lambda n: {"multipleOf": 3989 * 10.0 ** -n}),
    "multipleOf, many": (FEW, lambda n: {"properties": {"p%d" % i: {"multipleOf": (3000 + i) * 1e-15} for i in range(n)}}),
    "multipleOf, all": (FEW, lambda n: {"allOf": [{"multipleOf": 1 + i} for i in range(n)]}),
    "minimum": (NAMES, lambda n: {"properties": {"p%d" % i: {"minimum": 1e300 * (1 + i)} for i in range(n)}}),
    "minimum, all": (NAMES, lambda n: {"allOf": [{"minimum": i, "exclusiveMaximum": 3 * i + 100000} for i in range(n)]}),
    "numbers, any of": (NAMES, lambda n: {"anyOf": [{"minimum": 10 * i, "maximum": 10 * i + 5} for i in range(n)]}),
    "numbers, one of": (NAMES, lambda n: {"oneOf": [{"minimum": 10 * i + .5} for i in range(n)]}),
    "references of allOf": ([10, 20, 30, 60, 200], lambda n: web(n, "allOf")),
    "references of anyOf": ([10, 20, 30, 60, 200], lambda n: web(n, "anyOf")),
    "references of oneOf": ([5, 10, 20, 60, 200], lambda n: web(n, "oneOf")),
    "references within properties": ([10, 100, 1000, 5000], lambda n: {"$ref": "#/$defs/d0", "$defs": {
        "d%d" % i: {"properties": {"l": {"$ref": "#/$defs/d%d" % ((2 * i + 1) % n)}, "r": {"$ref": "#/$defs/d%d" % ((2 * i + 2) % n)}}}
        for i in range(n)}}),
    "references, all of all": ([10, 20, 40, 64, 200, 1000], lambda n: full_web(n, "allOf")),
    "references, any of all": ([10, 20, 40, 64, 200, 1000], lambda n: full_web(n, "anyOf")),
    "references with $id": ([100, 1000, 10000, 40000], lambda n: {"$id": "http://a/", "$defs": {
        "d%d" % i: {"$id": "http://a/%d" % i, "anyOf": [{"$ref": "%d" % ((i + 1) % n)}, {"type": "null"}]} for i in range(n)},
        "items": {"$ref": "http://a/0"}}),
    "a long $id": ([100, 1000, 5000], lambda n: {"$id": "http://a/" + "x" * 1000000 + "/", "properties": {
        "p%d" % i: {"$ref": "#/$defs/d%d" % i} for i in range(min(n, 250))}, "$defs": {
        "d%d" % i: {"$ref": "#/$defs/d%d" % (i + 1)} if i + 1 < n else {} for i in range(n)}}),
    "anchors": ([100, 1000, 10000], lambda n: {"$defs": {"d%d" % i: {"$dynamicAnchor": "a%d" % i} for i in range(n)},
        "anyOf": [{"$dynamicRef": "#a%d" % i} for i in range(n)]}),
    "empty subschemas": ([1000, 100000, 1000000, 1300000], lambda n: {"$defs": {"a": {"anyOf": [{}] * n}}}),
    "empty lists": ([1000, 100000, 1000000, 1300000], lambda n: {"enum": [[]] * n}),
    "false subschemas": ([1000, 100000, 600000], lambda n: {"anyOf": [False] * n}),
    "types": ([10, 64, 1000, 400000], lambda n: {"anyOf": [{"type": ["string"] * n}] * 3}),
    "unique items": ([5, 10, 11, 1000, 100000], lambda n: {"type": "array", "uniqueItems": True, "items": {"enum": list(range(n))}}),
    "unique items, equal": ([5, 10, 1000, 100000, 500000], lambda n: {"uniqueItems": True, "items": {"enum": [1] * n}}),
    "unique items, none possible": ([1000, 10000, 100000, 500000], lambda n: {
        "uniqueItems": True, "items": {"type": "string", "enum": list(range(n))}}),
    "unique items, long and none possible": ([10, 100, 1000], lambda n: {
        "uniqueItems": True, "items": {"type": "string", "enum": [[0] * 2000 + [i] for i in range(n)]}}),
    "titles": ([1000, 100000, 4000000], lambda n: {"title": "x" * n, "type": "string"}),
    "anyOf nested": ([10, 60, 100, 190], lambda n: nest(n, lambda x: {"anyOf": [x, {"type": "null"}]}, {"type": "string"})),
    "anyOf nested twice": ([5, 10, 15, 17], lambda n: nest(n, lambda x: {"anyOf": [x, {"required": ["a"], "allOf": [x]}]}, {"type": "object"})),
    "oneOf nested": ([5, 10, 20, 60], lambda n: nest(n, lambda x: {"oneOf": [x, {"type": "null"}]}, {"type": "object", "properties": prop(1)})),
    "not of oneOf": (FEW, lambda n: {"not": {"oneOf": [{"required": ["a%d" % i]} for i in range(n)]}}),
    "additionalProperties nested": ([10, 100, 180], lambda n: nest(n, lambda x: {"additionalProperties": x, "properties": merged(20, prop)}, {})),
    "many objects": ([100, 1000, 5000, 10000], lambda n: {"properties": {"o%d" % k: {"anyOf": [
        {"properties": merged(4, lambda j: prop(k * n + i * 4 + j, "boolean"))} for i in range(n // 50 or 1)]} for k in range(50)}}),
    "large objects": ([10, 50, 100, 250], lambda n: {"properties": {"o%d" % k: {
        "properties": merged(250, lambda j: prop(k * 250 + j, "string")), "required": ["p%d" % (k * 250 + j) for j in range(250)]}
        for k in range(n)}}),
    "combinations nested": ([4, 16, 40, 60], lambda n: combined(n, ["allOf", "anyOf", "oneOf"])),
    "oneOf nested, with names": ([4, 8, 16, 40, 60], lambda n: combined(n, ["oneOf"])),
    "circles of allOf": ([2, 10, 100, 1000], lambda n: circle(n, lambda a, b: {
        "allOf": [{"properties": {"a": a}}, {"properties": {"a": b}}]})),
    "circles of anyOf": ([2, 10, 100, 1000], lambda n: circle(n, lambda a, b: {
        "anyOf": [{"properties": {"a": a}}, {"properties": {"b": b}}]})),
    "circles of oneOf": ([2, 10, 100, 1000], lambda n: circle(n, lambda a, b: {
        "oneOf": [{"properties": {"a": a}, "required": ["a"]}, {"properties": {"b": b}, "required": ["b"]}]})),
    "enum with a long beginning": ([10, 100, 1000, 2000], lambda n: {"enum": ["x" * 1800 + "%d" % i for i in range(n)]}),
    "enum of ideographs": ([1000, 10000, 60000], lambda n: {"enum": [
        "".join(chr(0x4e00 + (i * 7919 + k * 104729) % 20000) for k in range(10)) for i in range(n)]}),
    "enum of equal objects": ([100, 1000, 10000], lambda n: {"enum": [
        {"p%d" % ((i + k) % 20): k for k in range(10)} for i in range(n)]}),
    "enum, referred to with a length": ([100, 250], lambda n: {
        "$defs": {"e": {"enum": ["v%d" % k for k in range(100000)]}},
        "properties": {"p%d" % i: {"$ref": "#/$defs/e", "maxLength": i + 3} for i in range(n)}}),
    "allOf of enums": ([2, 20, 100], lambda n: {"allOf": [{"enum": list(range(i, i + 5000))} for i in range(n)]}),
    "enum and pattern": ([100, 10000, 100000], lambda n: {"enum": ["s%d" % k for k in range(n)], "pattern": "(a|b)*s.*[0-5]$"}),
    "minItems of objects": ([10, 1000, 60000], lambda n: {"type": "array", "minItems": n, "maxItems": n + 1, "items": {
        "properties": merged(50, prop), "required": ["p%d" % i for i in range(50)]}}),
    "counts beyond integers": ([2**31, 2**53, 2**63, 10**30], lambda n: {
        "minItems": n, "minLength": n, "minProperties": n, "maxItems": n, "maxLength": n, "maxProperties": n}),
    "if within if": ([4, 12, 20, 60], lambda n: nest(n, lambda x: {
        "if": x, "then": {"required": ["b"]}, "else": {"required": ["c"]}}, {"required": ["a"]})),
    "allOf of if and anyOf": (FEW, lambda n: {"allOf": [
        {"if": {"anyOf": [{"required": ["a%d" % i]}, {"required": ["b%d" % i]}]}, "then": {"required": ["c%d" % i]}}
        for i in range(n)]}),
    "dependentSchemas with properties": (FEW, lambda n: {"properties": merged(n, prop), "dependentSchemas": {
        "p%d" % i: {"properties": {"q%d" % i: {"type": "string"}}, "required": ["q%d" % i]} for i in range(n)}}),
    "unevaluatedProperties after if": (FEW, lambda n: {"unevaluatedProperties": False, "allOf": [
        {"if": {"required": ["a%d" % i]}, "then": {"properties": {"b%d" % i: {}}}, "else": {"properties": {"c%d" % i: {}}}}
        for i in range(n)]}),
    "pattern of counts in counts": ([2, 4, 8, 16], lambda n: {"pattern": "(" * n + "[a-z]|\\d" + "){2,9}" * n}),
    "pattern of ranges": ([100, 10000], lambda n: {"pattern": "[%s]{1,200}" % "".join(
        "\\u%04x-\\u%04x" % (0x100 + 4 * i, 0x101 + 4 * i) for i in range(n))}),
    "prefixItems of long enums": ([10, 100, 1000], lambda n: {
        "$defs": {"e": {"enum": ["w%d" % i for i in range(50000)]}},
        "prefixItems": [{"$ref": "#/$defs/e", "minLength": i} for i in range(n)]}),
    "unknown keywords": ([1000, 380000], lambda n: dict({"type": "null"}, **{"%x" % i: 1 for i in range(n)})),
}


def gbnf_rules(n):
    return "root ::= " + " | ".join("r%d" % i for i in range(n)) + "\n" + "".join('r%d ::= "a%d"\n' % (i, i) for i in range(n))


def gbnf_web(n):
    return "root ::= r0\n" + "".join("r%d ::= \"a\"? %s\n" % (i, " ".join("r%d" % k for k in range(i + 1, min(n, i + 40))) or '"b"')
                                    for i in range(n))


def gbnf_nullable(n):
    return "root ::= r0 \"x\"\n" + "".join("r%d ::= r%d? \"\"\n" % (i, i + 1) for i in range(n)) + "r%d ::= \"a\"?\n" % n


def colliding(n):
    """Finds names whose hashes are equal in their last 12 bits, by trying."""
    seen, want, i, out = 0, None, 0, []
    while len(out) < n and i < 3000000:
        h = 2166136261
        for c in b"r%x" % i:
            h = (h ^ c) * 16777619 & 0xffffffff
        if h & 0xfff == 0:
            out.append("r%x" % i)
        i += 1
    return out


GBNF = {
    "rules": ([10, 1000, 10000, 100000, 140000], gbnf_rules),
    "rules that call": ([10, 100, 1000, 5000], gbnf_web),
    "rules that may be empty": ([10, 1000, 10000, 60000], gbnf_nullable),
    "names with equal hashes": ([10, 100, 700], lambda n: "root ::= " + " | ".join(colliding(n)) + "\n" + "".join(
        '%s ::= "a"\n' % r for r in colliding(n))),
    "counts of rules": ([2, 3, 4, 6, 20], lambda n: "root ::= r0\n" + "".join(
        "r%d ::= r%d{1,50}\n" % (i, i + 1) for i in range(n)) + 'r%d ::= "a"' % n),
    "rules in circles": ([100, 10000, 60000], lambda n: "root ::= r0\n" + "".join(
        'r%d ::= "a" r%d | "b" r%d\n' % (i, (i + 1) % n, (i * 7 + 3) % n) for i in range(n))),
    "counts": ([10, 100, 1000, 10000, 100000], lambda n: 'root ::= ("ab" | [c-z]{1,3}){%d}' % n),
    "counts in many rules": ([10, 100, 1000, 10000], lambda n: "root ::= " + " ".join("r%d" % i for i in range(n)) + "\n" + "".join(
        "r%d ::= [a-z]{%d}\n" % (i, 3000 + i) for i in range(n))),
    "classes": ([10, 1000, 4000], lambda n: "root ::= " + "".join("[%s] " % "".join(chr(0x3400 + 2 * k) for k in range(n)) for _ in range(300))),
    "subsets": ([10, 14, 16, 18, 40], lambda n: 'root ::= [ab]* "a" [ab]{%d}' % n),
    "subsets in rules": ([10, 100, 1000], lambda n: "root ::= " + " ".join("r%d" % i for i in range(n)) + "\n" + "".join(
        'r%d ::= ([ab]* "a" [ab]{12}) "%d"\n' % (i, i) for i in range(n))),
    "negated classes": ([100, 10000, 100000], lambda n: "root ::= " + "[^a-z] " * n),
    "alternatives": ([100, 10000, 100000, 400000], lambda n: "root ::= " + " | ".join('"%d"' % i for i in range(n))),
    "lefts": ([100, 10000, 100000], lambda n: "root ::= r0\n" + "".join("r%d ::= r%d \"a\" | \"b\"\n" % (i, (i + 1) % n) for i in range(n))),
    "loops": ([10, 100, 199], lambda n: "root ::= " + "(" * n + '"a"' + "* \"b\"?)*" * n),
}
REGEX = {
    "repeats": ([10, 100, 1000, 10000], lambda n: "(a|bc|[d-f]{1,9}){%d}" % n),
    "subsets": ([10, 14, 16, 18, 40], lambda n: "[ab]*a[ab]{%d}" % n),
    "letters": ([1, 10, 100, 1000, 10000], lambda n: "\\p{L}\\P{Lu}" * n),
    "dots": ([10, 100, 1000, 10000], lambda n: ".{%d}" % n),
    "optional": ([100, 1000, 10000], lambda n: "a?" * n + "a" * n),
    "words": ([100, 10000, 400000], lambda n: "|".join("w%d" % i for i in range(n))),
    "anchors": ([10, 1000, 100000], lambda n: "(^|a)($|b)" * n),
    "loops": ([10, 100, 199], lambda n: "(" * n + "a" + "*b?)*" * n),
    "nested counts": ([3, 10, 30, 100], lambda n: "((a{0,%d}b){0,%d}c){0,%d}" % (n, n, n)),
    "negated": ([100, 10000, 100000], lambda n: "[^a-z]" * n),
}


def tags(n, m, of):
    return json.dumps({"format": {"type": "triggered_tags", "triggers": ["<%d>" % i for i in range(m)],
                                  "tags": [{"begin": "<%d>" % (i % m), "content": of(i), "end": "</%d>" % i} for i in range(n)]}})


TAGS = {
    "tags": ([4, 64, 512, 4096], lambda n: tags(n, min(n, 512), lambda i: {"type": "any_text"})),
    "schemas": ([4, 64, 512, 4096], lambda n: tags(n, min(n, 512), lambda i: {"type": "json_schema", "json_schema": {
        "properties": merged(20, lambda k: prop(i * 20 + k))}})),
    "long marks": ([4, 64, 512], lambda n: json.dumps({"format": {"type": "any_text", "excludes": ["a" * 900 + "b%d" % i for i in range(n)]}})),
    "marks of one letter": ([4, 64, 512], lambda n: json.dumps({"format": {"type": "tag", "begin": "", "end": ["a" * (1 + i) + "b" for i in range(n)],
        "content": {"type": "any_text", "excludes": ["a" * (512 + i) + "c" for i in range(n)]}}})),
    "nested": ([4, 20, 90], lambda n: json.dumps({"format": nest(n, lambda x: {"type": "tag", "begin": "<", "content": x,
        "end": ["</%d>" % i + "x" * 50 for i in range(400)]}, {"type": "any_text"})})),
    "elements": ([10, 1000, 4096], lambda n: json.dumps({"format": {"type": "sequence", "elements": [
        {"type": "regex", "pattern": "[ab]*a[ab]{9}%d" % i} for i in range(n)]}})),
    "empty values": ([1000, 100000, 1300000], lambda n: json.dumps({"format": {"type": "const_string", "value": "a"}, "x": [{}] * n})),
}


def random_schema(r, depth=0):
    """Returns a schema of random keywords. Few combinations are useful, but any may be costly."""
    sub = lambda: random_schema(r, depth + 1)
    some = lambda most: r.randrange(1, r.choice([2, 4, most]) + 1)
    name = lambda: r.choice("abcdefgh") + str(r.randrange(r.choice([1, 30])))
    if depth > r.choice([2, 3, 5]):
        return r.choice([{}, True, {"type": r.choice(["string", "integer", "object", "array"])}, {"const": r.randrange(9)},
                         {"$ref": "#/$defs/" + r.choice("xyz")}])
    makers = [
        lambda: ("properties", {name(): sub() for _ in range(some(40))}),
        lambda: ("required", sorted({name() for _ in range(some(20))})),
        lambda: ("patternProperties", {r.choice(["^%s", "%s.*%s", "^.{1,%d}%s$"]).replace("%d", str(r.randrange(1, 30))).replace("%s", name()): sub() for _ in range(some(4))}),
        lambda: ("additionalProperties", sub()),
        lambda: ("propertyNames", {"pattern": r.choice(["^[a-d]", "^.{1,5}$", "a.*b"])}),
        lambda: ("minProperties", r.randrange(r.choice([3, 100]))),
        lambda: ("maxProperties", r.randrange(r.choice([5, 300]))),
        lambda: ("dependentRequired", {name(): [name()] for _ in range(some(8))}),
        lambda: ("dependentSchemas", {name(): sub() for _ in range(some(4))}),
        lambda: ("allOf", [sub() for _ in range(some(12))]),
        lambda: ("anyOf", [sub() for _ in range(some(12))]),
        lambda: ("oneOf", [sub() for _ in range(some(8))]),
        lambda: ("not", sub()),
        lambda: ("if", sub()), lambda: ("then", sub()), lambda: ("else", sub()),
        lambda: ("prefixItems", [sub() for _ in range(some(12))]),
        lambda: ("items", sub()),
        lambda: ("contains", sub()),
        lambda: ("minContains", r.randrange(r.choice([3, 60]))), lambda: ("maxContains", r.randrange(r.choice([3, 100]))),
        lambda: ("minItems", r.randrange(r.choice([3, 500]))), lambda: ("maxItems", r.randrange(r.choice([5, 5000]))),
        lambda: ("uniqueItems", True),
        lambda: ("unevaluatedProperties", r.choice([False, sub()])), lambda: ("unevaluatedItems", r.choice([False, sub()])),
        lambda: ("enum", [r.choice([r.randrange(99), name(), {"a": r.randrange(9)}, [r.randrange(9)], None]) for _ in range(some(200))]),
        lambda: ("const", r.choice([1, "a", {"a": 1, "b": [1, 2]}, [1, {"c": 2}], 2.5])),
        lambda: ("pattern", r.choice(["^(a|b)*a(a|b){%d}$" % r.randrange(18), ".*".join(name() for _ in range(some(9))), "^[a-z]{1,%d}$" % r.randrange(1, 3000), "\\p{L}{1,%d}" % r.randrange(1, 50)])),
        lambda: ("minLength", r.randrange(r.choice([3, 900]))), lambda: ("maxLength", r.randrange(r.choice([9, 3000]))),
        lambda: ("format", r.choice(["email", "uri", "date-time", "ipv6"])),
        lambda: ("minimum", r.choice([0, -5.5, 1e100, r.randrange(999)])), lambda: ("maximum", r.choice([0, 5.25, 1e100, r.randrange(999)])),
        lambda: ("multipleOf", r.choice([1, 7, 0.01, 3989, 0.0000000123])),
        lambda: ("type", r.choice(["object", "array", "string", "number", "integer", ["object", "null"], ["array", "object"]])),
        lambda: ("$ref", "#/$defs/" + r.choice("xyz")),
    ]
    out = dict(r.choice(makers)() for _ in range(some(6)))
    if depth == 0:
        out["$defs"] = {n: random_schema(r, 1) for n in "xyz"}
    return out


def measure(program, kind, text, folder):
    path = os.path.join(folder, "text")
    with open(path, "w") as f:
        f.write(text)
    try:
        done = subprocess.run([program, "--compile", kind, path], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return 120.0, 0.0, 0, "still running"
    parts = done.stdout.split("\t")
    if done.returncode or len(parts) < 4:
        return 999.0, 0.0, 0, "ended with %d: %s" % (done.returncode, done.stderr[-200:])
    return float(parts[0]), float(parts[1]), int(parts[2]), parts[3].strip()


def main():
    sys.setrecursionlimit(20000)   # for nested lists of 2,000 levels
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("program")
    args.add_argument("--random", type=int, default=0, help="also so many random schemas")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--all", action="store_true", help="print all, not those above 0.5 s and 150 MB alone")
    args.add_argument("--only", default="", help="families whose name contains this")
    a = args.parse_args()
    worst = []
    with tempfile.TemporaryDirectory() as folder:
        def one(kind, name, text):
            if len(text) > 4 << 20:
                return
            seconds, megabytes, steps, said = measure(a.program, kind, text, folder)
            worst.append((seconds, megabytes, name))
            if a.all or seconds > .5 or megabytes > 150:
                print("%-6s %-46s %8d B %6.2f s %6.0f MB %11d  %s" % (kind, name, len(text), seconds, megabytes, steps, said[:90]), flush=True)
        for kind, families in (("schema", FAMILIES), ("gbnf", GBNF), ("regex", REGEX), ("tags", TAGS)):
            for name, (sizes, make) in families.items():
                for n in sizes:
                    if a.only in name:
                        text = make(n)
                        one(kind, "%s: %d" % (name, n), json.dumps(text, separators=(",", ":")) if kind == "schema" else text)
        for i in range(a.random):
            one("schema", "random %d" % (a.seed + i), json.dumps(random_schema(random.Random(a.seed + i))))
    if worst:
        print("%d texts; most: %.2f s (%s), %.0f MB (%s)" % (len(worst), max(worst)[0], max(worst)[2],
              max(w[1] for w in worst), max(worst, key=lambda w: w[1])[2]))
        sys.exit(max(worst)[0] > 3 or max(w[1] for w in worst) > 500)


if __name__ == "__main__":
    main()
