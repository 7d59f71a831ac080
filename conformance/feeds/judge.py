"""Judges answers of the query API, one JSON document on each line of standard input, by the published schema."""

import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    validator = jsonschema.Draft202012Validator(json.load(file))
wrong = 0
for line in sys.stdin:
    record = json.loads(line)
    for error in validator.iter_errors(record):
        wrong += 1
        print(f"{record.get('id')}: {error.json_path}: {error.message[:200]}")
sys.exit(1 if wrong else 0)
