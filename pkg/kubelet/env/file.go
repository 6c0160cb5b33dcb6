package env

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Bounds of what comes from a file, as upstream has them.
const (
	maxFileKey   = 128
	maxFileValue = 32 << 10
)

// fileKey is the value of a key in an env file of one of the pod's volumes.
func (b *builder) fileKey(ref *corev1.FileKeySelector) (string, bool, error) {
	if len(ref.Key) > maxFileKey {
		return "", false, fmt.Errorf("environment variable key %q exceeds maximum length of %d characters", ref.Key,
			maxFileKey)
	}
	optional := ref.Optional != nil && *ref.Optional
	data, err := b.src.File(ref.VolumeName, ref.Path)
	if err != nil {
		if optional && errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", false, err
	}
	vars, err := parseFile(string(data))
	if err != nil {
		return "", false, fmt.Errorf("couldn't parse env file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
	}
	value, ok := vars[ref.Key]
	switch {
	case !ok && optional:
		return "", false, nil
	case !ok:
		return "", false, fmt.Errorf("environment variable key %q not found in file %q", ref.Key, ref.Path)
	case len(value) > maxFileValue:
		return "", false, fmt.Errorf("environment variable value for key %q exceeds maximum size of 32KB", ref.Key)
	}
	return value, true, nil
}

// parseFile reads an env file: lines KEY='value'. A value goes on to the closing quote, over several lines too, and is
// literal. If a key comes again, its last value counts, as in a shell. Errors name the line but not its text, which may
// be confidential. The syntax:
// https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-via-file/#env-file-syntax.
func parseFile(text string) (map[string]string, error) {
	vars := map[string]string{}
	for line := 1; text != ""; {
		head, _, _ := strings.Cut(text, "\n")
		if trimmed := strings.TrimSpace(head); trimmed == "" || trimmed[0] == '#' {
			text, line = strings.TrimPrefix(text[len(head):], "\n"), line+1
			continue
		}
		before, quoted, ok := strings.Cut(text, "'")
		name, assigned := strings.CutSuffix(strings.TrimRight(before, " \t"), "=")
		if name = strings.Trim(name, " \t"); !ok || !assigned || name == "" || strings.ContainsAny(name, "\n= \t\"") {
			return nil, fmt.Errorf("line %d is not of the form KEY='value'", line)
		}
		value, rest, ok := strings.Cut(quoted, "'")
		if !ok {
			return nil, fmt.Errorf("the quote that line %d opens is not closed", line)
		}
		line += strings.Count(value, "\n")
		tail, next, _ := strings.Cut(rest, "\n")
		if strings.TrimSpace(tail) != "" {
			return nil, fmt.Errorf("line %d goes on after the closing quote", line)
		}
		vars[name] = value
		text, line = next, line+1
	}
	return vars, nil
}
