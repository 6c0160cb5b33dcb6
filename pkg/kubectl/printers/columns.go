package printers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// column is one of -o custom-columns.
type column struct {
	header string
	path   *jsonpath.JSONPath
}

// Columns are the columns of -o custom-columns: rows of values found by JSONPath.
type Columns struct {
	columns   []column
	noHeaders bool
	printed   bool
	out       *Aligner
}

// NewColumns reads "HEADER:.json.path,…".
func NewColumns(spec string, noHeaders bool) (*Columns, error) {
	if spec == "" {
		return nil, errors.New("custom-columns format specified but no custom columns given")
	}
	c := &Columns{noHeaders: noHeaders}
	for _, part := range strings.Split(spec, ",") {
		header, path, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", part)
		}
		if err := c.add(header, path); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// NewColumnsFile reads a template of two lines: headers and paths, separated by spaces.
func NewColumnsFile(path string, noHeaders bool) (*Columns, error) {
	if path == "" {
		return nil, errors.New("custom-columns-file format specified but no template file given")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("error reading template %s, %w", path, err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	var fields [2][]string
	for i, what := range []string{"header", "spec"} {
		if !lines.Scan() {
			return nil, fmt.Errorf("invalid template, missing %s line. Expected format is one line of space separated headers, one line of space separated column specs.", what)
		}
		fields[i] = strings.Fields(lines.Text())
	}
	if len(fields[0]) != len(fields[1]) {
		return nil, fmt.Errorf("number of headers (%d) and field specifications (%d) don't match", len(fields[0]),
			len(fields[1]))
	}
	c := &Columns{noHeaders: noHeaders}
	for i, h := range fields[0] {
		if err := c.add(h, fields[1][i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Columns) add(header, path string) error {
	relaxed, err := RelaxedPath(path)
	if err != nil {
		return err
	}
	j := jsonpath.New(header).AllowMissingKeys(true)
	if err := j.Parse(relaxed); err != nil {
		return err
	}
	c.columns = append(c.columns, column{header, j})
	return nil
}

// Print shows obj, or each item of a list, as a row.
func (c *Columns) Print(obj runtime.Object, w io.Writer) error {
	if c.out == nil {
		c.out = NewAligner(w)
	}
	if !c.printed && !c.noHeaders {
		var h []string
		for _, col := range c.columns {
			h = append(h, col.header)
		}
		c.out.Row(h...)
	}
	c.printed = true
	err := eachItem(obj, func(o runtime.Object) error {
		data, err := content(o)
		if err != nil {
			return err
		}
		row := make([]string, len(c.columns))
		for i, col := range c.columns {
			if row[i], err = value(col.path, data); err != nil {
				return err
			}
		}
		c.out.Row(row...)
		return nil
	})
	if err != nil {
		return err
	}
	return c.out.Flush()
}

func value(path *jsonpath.JSONPath, data any) (string, error) {
	found, err := path.FindResults(data)
	if err != nil {
		return "", err
	}
	if len(found) == 0 || len(found[0]) == 0 {
		return "<none>", nil
	}
	var values []string
	for _, set := range found {
		for _, v := range set {
			values = append(values, fmt.Sprint(v.Interface()))
		}
	}
	return strings.Join(values, ","), nil
}

// RelaxedPath completes a JSONPath written without braces or the leading dot: "x.y", ".x.y", "{x.y}" mean "{.x.y}".
func RelaxedPath(path string) (string, error) {
	p := path
	if p == "" {
		return p, nil
	}
	if strings.HasPrefix(p, "{") != strings.HasSuffix(p, "}") || strings.HasPrefix(p, "}") ||
		strings.Count(p, "{") != strings.Count(p, "}") {
		return "", fmt.Errorf("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'")
	}
	if strings.HasPrefix(p, "{") {
		p = p[1 : len(p)-1]
	}
	return "{." + strings.TrimPrefix(p, ".") + "}", nil
}
