package main

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

var passed, failed int

// check runs one check and prints one line. The function returns an error, or
// uses must, same and that, which end it by a panic of type wrong.
func check(name string, body func() error) {
	err := guarded(body)
	if err == nil {
		passed++
		fmt.Printf("  ok    %s\n", name)
		return
	}
	failed++
	fmt.Printf("  FAIL  %s: %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
}

func finish() int {
	fmt.Printf("\n%d passed, %d failed\n", passed, failed)
	return min(failed, 1)
}

type wrong struct{ error }

func guarded(body func() error) (err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case wrong:
			err = problem.error
		default:
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	return body()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(wrong{err})
	}
	return value
}

func that(condition bool, format string, args ...any) {
	if !condition {
		panic(wrong{fmt.Errorf(format, args...)})
	}
}

func same(actual, expected any, what string) {
	if a, ok := actual.(proto.Message); ok {
		if b, ok := expected.(proto.Message); ok {
			that(proto.Equal(a, b), "%s is {%v}, expected {%v}", what, a, b)
			return
		}
	}
	that(reflect.DeepEqual(actual, expected), "%s is %#v, expected %#v", what, actual, expected)
}

// refused expects an error with this code and returns its details.
func refused(err error, code codes.Code) []any {
	that(err != nil, "it succeeded, expected %s", code)
	state := status.Convert(err)
	that(state.Code() == code, "code is %s (%s), expected %s", state.Code(), state.Message(), code)
	that(state.Message() != "", "the message is empty")
	return state.Details()
}

// detail finds the detail of type T.
func detail[T proto.Message](details []any) T {
	for _, d := range details {
		if hit, ok := d.(T); ok {
			return hit
		}
	}
	var none T
	panic(wrong{fmt.Errorf("no %T among the details %v", none, details)})
}
