package create

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// sources are the flags that name the content of a config map or secret.
type sources struct {
	files, literals, envFiles []string
	hash                      bool
}

func (s *sources) add(set *pflag.FlagSet) {
	set.StringSliceVar(&s.files, "from-file", nil,
		"Key file can be specified using its file path, in which case file basename will be used as key, or optionally with a key and file path, in which case the given key will be used.  Specifying a directory will iterate each named file in the directory whose basename is a valid key.")
	set.StringArrayVar(&s.literals, "from-literal", nil,
		"Specify a key and literal value to insert (i.e. mykey=somevalue)")
	set.StringSliceVar(&s.envFiles, "from-env-file", nil, "Specify the path to a file to read lines of key=val pairs.")
	set.BoolVar(&s.hash, "append-hash", false, "Append a hash of the object to its name.")
}

// entry is one key of the object.
type entry struct {
	key   string
	value []byte
}

// entries reads all sources in the order files, literals, env files.
func (s *sources) entries() ([]entry, error) {
	if len(s.envFiles) > 0 && len(s.files)+len(s.literals) > 0 {
		return nil, errors.New("from-env-file cannot be combined with from-file or from-literal")
	}
	var out []entry
	for _, f := range s.files {
		more, err := fromFile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for _, l := range s.literals {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("invalid literal source %v, expected key=value", l)
		}
		out = append(out, entry{k, []byte(v)})
	}
	for _, f := range s.envFiles {
		more, err := fromEnvFile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// fromFile reads "path" or "key=path"; a directory gives one entry for each regular file, without those in directories
// below it. The caller refuses names that cannot be keys: their rules depend on the object's kind.
func fromFile(arg string) ([]entry, error) {
	key, path, err := keyPath(arg)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, reading(path, err)
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, reading(path, err)
		}
		return []entry{{key, data}}, nil
	}
	if strings.Contains(arg, "=") {
		return nil, errors.New("cannot give a key name for a directory path")
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("error listing files in %s: %w", path, err)
	}
	var out []entry
	for _, f := range list {
		if !f.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(path, f.Name()))
		if err != nil {
			return nil, reading(path, err)
		}
		out = append(out, entry{f.Name(), data})
	}
	return out, nil
}

// keyPath splits "key=path"; without a key it is the file's name.
func keyPath(arg string) (key, path string, err error) {
	key, path, ok := strings.Cut(arg, "=")
	switch {
	case !ok:
		return filepath.Base(arg), arg, nil
	case strings.Contains(path, "="):
		return "", "", errors.New("key names or file paths cannot contain '='")
	case key == "":
		return "", "", fmt.Errorf("key name for file path %v missing", path)
	case path == "":
		return "", "", fmt.Errorf("file path for key name %v missing", key)
	}
	return key, path, nil
}

// reading returns the error of a failure to read path, which names path once: os's own errors name it, too.
func reading(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("error reading %s: %w", path, err)
}

// fromEnvFile reads lines KEY=VALUE in UTF-8, with or without a byte order mark. A line KEY takes its value from
// kubectl's own environment. Empty lines and lines that begin with # are left out.
func fromEnvFile(path string) ([]entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reading(path, err)
	}
	if info.IsDir() {
		return nil, errors.New("env config file cannot be a directory")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, reading(path, err)
	}
	var out []entry
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	for n := 1; lines.Scan(); n++ {
		if !utf8.Valid(lines.Bytes()) {
			return nil, fmt.Errorf("env file %s contains invalid utf8 bytes at line %d: %v", path, n, lines.Bytes())
		}
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if errs := validation.IsEnvVarName(key); len(errs) > 0 {
			return nil, fmt.Errorf("%q is not a valid key name: %s", key, strings.Join(errs, ";"))
		}
		if !ok {
			value = os.Getenv(key)
		}
		out = append(out, entry{key, []byte(value)})
	}
	return out, lines.Err()
}

// hashSuffix returns "-" and ten letters that depend on content alone, so that changed content has another name. Digits
// and vowels that could form words are replaced, with upstream's table: the same content must have the same name there.
func hashSuffix(content map[string]any) (string, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	text := strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e",
		"t").Replace(hex.EncodeToString(sum[:])[:10])
	return "-" + text, nil
}
