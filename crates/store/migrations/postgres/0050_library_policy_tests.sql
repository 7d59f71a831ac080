-- Tests of library policies: what each must decide about versions of packages. A row for each policy that has some.
CREATE TABLE library_policy_tests (
  policy TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- bowline.libraries.v1.PolicyTestList.
  tests BYTEA NOT NULL
);
