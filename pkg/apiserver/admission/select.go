package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Place says where a plug-in that Kubernetes does not have runs, and whether it runs without being enabled.
type Place struct {
	// After names the plug-in that runs just before it: one of Kubernetes', built or not, switched on or off, or
	// another plug-in with a Place that comes earlier in the list. Of several plug-ins with the same After, the first
	// in the list runs first.
	After string
	// OnByDefault is what holds until a flag enables or disables the plug-in.
	OnByDefault bool
}

// Select returns the plug-ins of available that are on, in the order they run: those that are on by default or in
// enable, and not in disable. Kubernetes' plug-ins have its order and its defaults; others bring a Place.
//
// A name in enable or disable that is unknown, or enabled and not built, is an error: whoever names a plug-in relies on
// what it checks. So is a list of plug-ins from which one would be dropped or which would run one twice.
func Select(available []Plugin, enable, disable []string) ([]Plugin, error) {
	all, on, err := arrange(available)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unknown("enable", enable, all), unknown("disable", disable, all)); err != nil {
		return nil, err
	}
	if both := slices.DeleteFunc(slices.Clone(enable), func(n string) bool {
		return !slices.Contains(disable, n)
	}); len(both) > 0 {
		return nil, fmt.Errorf("%v in enable-admission-plugins and disable-admission-plugins overlapped", both)
	}
	built := map[string]Plugin{}
	for _, p := range available {
		built[p.Name] = p
	}
	for _, n := range enable {
		if _, ok := built[n]; !ok {
			return nil, fmt.Errorf("admission plug-in %q is not built: nothing would check or change what it does in Kubernetes", n)
		}
	}
	var chosen []Plugin
	for _, n := range all {
		p, ok := built[n]
		if ok && !slices.Contains(disable, n) && (slices.Contains(on, n) || slices.Contains(enable, n)) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// unknown names the plug-ins of a flag that are none of all.
func unknown(verb string, names, all []string) error {
	var errs []error
	for _, n := range names {
		if !slices.Contains(all, n) {
			errs = append(errs, fmt.Errorf("%s-admission-plugins plugin %q is unknown", verb, n))
		}
	}
	return errors.Join(errs...)
}

// Usage describes, as upstream, a flag that enables or disables plug-ins: what it does, which plug-ins are on by
// default, and which there are. Plug-ins that cannot be arranged are left out: Select says what is wrong with them.
func Usage(what string, available []Plugin) string {
	all, on, err := arrange(available)
	if err != nil {
		all, on = order(), defaultOn()
	}
	slices.Sort(all)
	return fmt.Sprintf("%s (%s). Comma-delimited list of admission plugins: %s. The order of plugins in this flag does not matter.",
		what, strings.Join(on, ", "), strings.Join(all, ", "))
}

// arrange returns the names of all plug-ins in the order they run, and those that are on by default.
func arrange(available []Plugin) (all, on []string, err error) {
	all, on = order(), defaultOn()
	kubernetes := order()
	seen, after := map[string]bool{}, map[string]string{}
	for _, p := range available {
		known := slices.Contains(kubernetes, p.Name)
		switch {
		case p.Name == "":
			return nil, nil, errors.New("an admission plug-in has no name")
		case seen[p.Name]:
			return nil, nil, fmt.Errorf("admission plug-in %q is there twice", p.Name)
		case known && p.Place != nil:
			return nil, nil, fmt.Errorf("admission plug-in %q is Kubernetes' and has its place already", p.Name)
		case !known && p.Place == nil:
			return nil, nil, fmt.Errorf("admission plug-in %q is not one of Kubernetes': it needs a Place", p.Name)
		}
		seen[p.Name] = true
		if known {
			continue
		}
		at := slices.Index(all, p.Place.After)
		if at < 0 {
			return nil, nil, fmt.Errorf("admission plug-in %q stands after %q, which is unknown", p.Name, p.Place.After)
		}
		// Behind those that stand after the same one, and behind what stands after these.
		at++
		for at < len(all) && stands(all[at], p.Place.After, after) {
			at++
		}
		all, after[p.Name] = slices.Insert(all, at, p.Name), p.Place.After
		if p.Place.OnByDefault {
			on = append(on, p.Name)
		}
	}
	return all, on, nil
}

// stands reports whether the plug-in's place counts, directly or by others, from the plug-in first.
func stands(name, first string, after map[string]string) bool {
	for {
		name = after[name]
		if name == "" || name == first {
			return name == first
		}
	}
}
