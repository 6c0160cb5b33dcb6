package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// withLibraries returns the files that an image needs to run a program: the program itself at path, its dynamic loader
// where the program names it, and the shared libraries in lib/, also those that other libraries need. The values are
// paths on this machine. A static program needs nothing else. sysroot is where the loader and the libraries are, "/" or
// the directory of a cross compiler's.
//
// It reads the ELF files and runs none, unlike ldd, which starts the program's loader. A library that a program loads
// at run time (dlopen) is in no table, and so is not found.
func withLibraries(path, program, sysroot string) (map[string]string, error) {
	files := map[string]string{path: program}
	loader, needed, err := linkage(program)
	if err != nil || loader == "" {
		return files, err
	}
	files[strings.TrimPrefix(loader, "/")] = filepath.Join(sysroot, loader)
	for len(needed) > 0 {
		name := needed[0]
		needed = needed[1:]
		if name == filepath.Base(loader) || files["lib/"+name] != "" {
			continue
		}
		library, err := findLibrary(sysroot, loader, name)
		if err != nil {
			return nil, fmt.Errorf("%s needs %s: %w", program, name, err)
		}
		files["lib/"+name] = library
		_, more, err := linkage(library)
		if err != nil {
			return nil, err
		}
		needed = append(needed, more...)
	}
	return files, nil
}

// linkage returns the loader that an ELF file names, "" if it names none, and the libraries that the file itself
// needs.
func linkage(path string) (loader string, needed []string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("read the program %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			if err != nil {
				return "", nil, fmt.Errorf("read the loader of %s: %w", path, err)
			}
			loader = strings.TrimRight(string(name), "\x00")
		}
	}
	needed, err = f.ImportedLibraries()
	if err != nil {
		return "", nil, fmt.Errorf("read the libraries of %s: %w", path, err)
	}
	return loader, needed, nil
}

// findLibrary looks for a library beside the loader, since distributions keep the two in one directory, and then
// where glibc looks.
func findLibrary(sysroot, loader, name string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(sysroot, loader))
	if err != nil {
		return "", err
	}
	for i, dir := range []string{filepath.Dir(real), "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		if i > 0 {
			dir = filepath.Join(sysroot, dir)
		}
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("it is neither in %s nor in /lib64, /usr/lib64, /lib or /usr/lib", filepath.Dir(real))
}
