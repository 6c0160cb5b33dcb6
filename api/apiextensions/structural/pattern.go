package structural

import "regexp/syntax"

// patternSize returns how many steps a regular expression has when it is compiled.
//
// Repetitions are expanded only by compilation, so nothing cheaper shows what a pattern costs. Measuring is bounded
// too: Go's parser refuses patterns whose program would take more than 128 MiB.
func patternSize(pattern string) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}
