package main

import (
	"encoding/json"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// only is the descriptor of the single image that an index of a layout names.
func only(index []byte) (ocispec.Descriptor, error) {
	var read ocispec.Index
	if err := json.Unmarshal(index, &read); err != nil {
		return ocispec.Descriptor{}, err
	}
	if len(read.Manifests) != 1 {
		return ocispec.Descriptor{}, fmt.Errorf("the layout has %d images", len(read.Manifests))
	}
	return read.Manifests[0], nil
}
