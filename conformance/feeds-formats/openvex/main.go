// Reads OpenVEX documents with the format's own library, and says what they state of a product.
//
//	openvex FILE            checks the document
//	openvex FILE PURL NAME  prints the status that it states of the product and the vulnerability
package main

import (
	"fmt"
	"os"

	"github.com/openvex/go-vex/pkg/vex"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	document, err := vex.Open(arguments[0])
	if err != nil {
		return err
	}
	if len(document.Statements) == 0 {
		return fmt.Errorf("%s: no statement", arguments[0])
	}
	for _, statement := range document.Statements {
		if err := statement.Validate(); err != nil {
			return fmt.Errorf("%s: %w", arguments[0], err)
		}
	}
	if len(arguments) == 3 {
		for _, statement := range document.Matches(arguments[2], arguments[1], nil) {
			fmt.Println(statement.Status)
		}
	}
	return nil
}
