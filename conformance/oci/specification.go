package main

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed oci-conformance.yaml
var configuration []byte

// report is what the suite says of its run.
type report struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
	Disabled int `xml:"disabled,attr"`
}

// specification runs the distribution specification's own suite, every test of it, as a user that may push.
func specification(host, organization, user, password string) {
	directory := get[string]("a directory for its results")(os.MkdirTemp("", "specification"))
	defer os.RemoveAll(directory)
	file := filepath.Join(directory, "oci-conformance.yaml")
	must("it is configured", os.WriteFile(file, configuration, 0o600))
	suite := exec.Command(os.Getenv("OCI_SUITE"))
	suite.Env = append(os.Environ(),
		"OCI_CONFIGURATION="+file, "OCI_RESULTS_DIR="+directory,
		"OCI_REGISTRY="+host, "OCI_TLS=disabled", "OCI_USERNAME="+user, "OCI_PASSWORD="+password,
		"OCI_REPO1="+organization+"/specification/one", "OCI_REPO2="+organization+"/specification/two")
	output, err := suite.CombinedOutput()
	if err != nil {
		os.Stderr.Write(output)
	}
	must("the specification's suite passes", err)
	// The suite ends well, too, when it could not be set up: what it ran is what counts.
	told := get[[]byte]("it reports")(os.ReadFile(filepath.Join(directory, "junit.xml")))
	var ran report
	must("its report is read", xml.Unmarshal(told, &ran))
	what := fmt.Sprintf("%d tests, %d failures, %d errors, %d skipped, %d disabled",
		ran.Tests, ran.Failures, ran.Errors, ran.Skipped, ran.Disabled)
	check(what, ran == report{Tests: ran.Tests} && ran.Tests > 900)
}
