package main

import (
	"context"
	"log/slog"

	"bonsai/pkg/apiserver/registry"
)

// validateAdmission checks the names of admission plug-ins.
func (o *options) validateAdmission() []error { return nil }

// plugins is the admission chain and what must run for it.
type plugins struct {
	chain registry.Admitter
	runs  []func(context.Context) error
}

func newAdmission(o *options, s *stores, may *authorization, log *slog.Logger) (*plugins, error) {
	return &plugins{}, nil
}
