package pod

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// The messages that programs have for files: the texts of errno in C, Go, Java, Python, Node.js and shells.
var (
	notThere = regexp.MustCompile(`(?i)no such file|not found|ENOENT|cannot (open|find|stat|read|load)|` +
		`does(n't| not) exist|NotFoundException|unable to (open|find|load|read)|missing|is a directory|EISDIR|not a (regular )?file`)
	notAllowed = regexp.MustCompile(`(?i)permission denied|EACCES|EPERM|not permitted|access ?denied`)
	notWritten = regexp.MustCompile(`(?i)read-only file ?system|EROFS`)
	// absolute matches paths. What follows one in a message ("/key: denied", "/key.") is no part of it.
	absolute = regexp.MustCompile(`(?:^|[\s"'=:(\[<])(/[A-Za-z0-9_@+~-][A-Za-z0-9_.@+~/-]*)`)
)

// paths are the absolute paths in a text, the first maxNamed, without their last dots and slashes.
func paths(text string) (list []string) {
	for _, m := range absolute.FindAllStringSubmatch(text, maxNamed) {
		if p := path.Clean(strings.TrimRight(m[1], "./")); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// files explains a program by the files that it names: those that a volume does not have, that its user may not use, or
// that nobody may write.
func (p *program) files(ctx context.Context) []why.Cause {
	var causes []why.Cause
	add := func(cause why.Cause, ok bool) {
		same := func(c why.Cause) bool { return c.Code == cause.Code && c.Text == cause.Text }
		if ok && !slices.ContainsFunc(causes, same) {
			causes = append(causes, cause)
		}
	}
	for _, line := range slices.Backward(p.said) {
		named := paths(line)
		if len(named) == 0 && p.c.WorkingDir != "" && (notWritten.MatchString(line) || notAllowed.MatchString(line)) {
			if m, _ := p.mount(p.c.WorkingDir); m != nil {
				named = []string{p.c.WorkingDir} // a relative name
			}
		}
		for _, file := range named {
			switch {
			case notWritten.MatchString(line):
				add(p.readOnly(file))
			case notAllowed.MatchString(line):
				add(p.mode(ctx, file))
			case notThere.MatchString(line):
				add(p.missing(ctx, file))
			}
		}
	}
	if saysNoToken(p.said) {
		add(noToken(ctx, p))
	}
	for i := range p.c.VolumeMounts {
		add(p.subPath(ctx, &p.c.VolumeMounts[i]))
	}
	for _, text := range p.told {
		for _, file := range paths(text) {
			if _, volume := p.mount(file); volume == nil || given(volume) || accountFile(file) {
				add(p.missing(ctx, file))
			}
		}
	}
	return causes
}

// mount returns the mount under which a file is and its volume, nil if it is in the image.
func (p *program) mount(file string) (*corev1.VolumeMount, *corev1.Volume) {
	var best *corev1.VolumeMount
	for i := range p.c.VolumeMounts {
		m := &p.c.VolumeMounts[i]
		if under(file, m.MountPath) && (best == nil || len(path.Clean(m.MountPath)) > len(path.Clean(best.MountPath))) {
			best = m
		}
	}
	if best == nil {
		return nil, nil
	}
	return best, p.volume(best.Name)
}

func (p *program) volume(name string) *corev1.Volume {
	for i := range p.pod.Spec.Volumes {
		if p.pod.Spec.Volumes[i].Name == name {
			return &p.pod.Spec.Volumes[i]
		}
	}
	return nil
}

// under reports whether a file is a directory or below it.
func under(file, directory string) bool {
	directory = path.Clean(directory)
	return file == directory || strings.HasPrefix(file, strings.TrimSuffix(directory, "/")+"/")
}

// given reports whether a volume has files of the API: of ConfigMaps, Secrets, tokens and fields.
func given(v *corev1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
}

// mounted is evidence in a field of a mount.
func (p *program) mounted(m *corev1.VolumeMount, field, value string) why.Evidence {
	return why.See(p.self, specField(p.what, p.c.Name, fmt.Sprintf(`volumeMounts[?(@.mountPath=="%s")].%s`,
		m.MountPath, field)), value)
}

// content are the files of a volume of the API, and from names what they come from; known is false if it is another
// volume, or could not be read.
func (p *program) content(ctx context.Context, v *corev1.Volume) (files map[string]bool, from string, known bool) {
	files = map[string]bool{}
	take := func(keys map[string]bool, items []corev1.KeyToPath) {
		for _, i := range items {
			if keys[i.Key] {
				files[path.Clean(i.Path)] = true
			}
		}
		if len(items) == 0 {
			maps.Copy(files, keys)
		}
	}
	configMap := func(name string, items []corev1.KeyToPath) bool {
		keys, known := configMapKeys(ctx, p.World, p.pod.Namespace, name)
		take(keys, items)
		return known
	}
	secret := func(name string, items []corev1.KeyToPath) bool {
		keys, known := secretKeys(ctx, p.World, p.pod.Namespace, name)
		take(keys, items)
		return known
	}
	switch {
	case v.ConfigMap != nil:
		return files, "ConfigMap " + v.ConfigMap.Name, configMap(v.ConfigMap.Name, v.ConfigMap.Items)
	case v.Secret != nil:
		return files, "Secret " + v.Secret.SecretName, secret(v.Secret.SecretName, v.Secret.Items)
	case v.DownwardAPI != nil:
		for _, i := range v.DownwardAPI.Items {
			files[path.Clean(i.Path)] = true
		}
		return files, "volume " + v.Name, true
	case v.Projected == nil:
		return nil, "", false
	}
	known = true
	for _, s := range v.Projected.Sources {
		switch {
		case s.ConfigMap != nil:
			known = configMap(s.ConfigMap.Name, s.ConfigMap.Items) && known
		case s.Secret != nil:
			known = secret(s.Secret.Name, s.Secret.Items) && known
		case s.DownwardAPI != nil:
			for _, i := range s.DownwardAPI.Items {
				files[path.Clean(i.Path)] = true
			}
		case s.ServiceAccountToken != nil:
			files[path.Clean(s.ServiceAccountToken.Path)] = true
		default:
			return nil, "", false
		}
	}
	return files, "volume " + v.Name, known
}

// has reports whether files have a file, or a directory of that name.
func has(files map[string]bool, name string) bool {
	for f := range files {
		if under(f, name) {
			return true
		}
	}
	return false
}

// subPath explains a mount of a single file that its volume does not have: the kubelet makes an empty directory there.
func (p *program) subPath(ctx context.Context, m *corev1.VolumeMount) (why.Cause, bool) {
	v := p.volume(m.Name)
	if m.SubPath == "" || v == nil {
		return why.Cause{}, false
	}
	files, from, known := p.content(ctx, v)
	if !known || has(files, path.Clean(m.SubPath)) {
		return why.Cause{}, false
	}
	names := slices.Sorted(maps.Keys(files))
	return why.Cause{Code: "SubPathMissing",
		Text: fmt.Sprintf("The mount at %s takes %s (subPath) from %s, which has no such file: the container finds an "+
			"empty directory there. It has: %s.", m.MountPath, m.SubPath, from, why.And(names)),
		Evidence: []why.Evidence{p.mounted(m, "subPath", m.SubPath),
			why.See(p.self, fmt.Sprintf(`.spec.volumes[?(@.name=="%s")]`, v.Name), from)},
		Fixes: []why.Fix{{Text: fmt.Sprintf("Add the key %s, or name one that is there; then make the pod anew: "+
			"subPaths do not follow changes.", m.SubPath)}}}, true
}

// missing explains a file that is not there: a token that is not mounted, a file that its volume does not have, or one
// of the image that a volume hides.
func (p *program) missing(ctx context.Context, file string) (why.Cause, bool) {
	m, v := p.mount(file)
	if m == nil {
		if !accountFile(file) {
			return why.Cause{}, false
		}
		return noToken(ctx, p)
	}
	if v == nil || m.SubPath != "" || m.SubPathExpr != "" || file == path.Clean(m.MountPath) {
		return why.Cause{}, false
	}
	if v.EmptyDir != nil && p.first(v.Name) {
		return hides(p.inquiry, p.c, p.what, m, file), true
	}
	files, from, known := p.content(ctx, v)
	name := strings.TrimPrefix(strings.TrimPrefix(file, path.Clean(m.MountPath)), "/")
	if !known || has(files, name) {
		return why.Cause{}, false
	}
	names := slices.Sorted(maps.Keys(files))
	return why.Cause{Code: "FileMissing",
		Text: fmt.Sprintf("%s, which is mounted at %s, has no file %s, which the program uses. It has: %s.",
			capital(from), m.MountPath, name, why.And(names)),
		Evidence: []why.Evidence{p.mounted(m, "name", v.Name),
			why.See(p.self, fmt.Sprintf(`.spec.volumes[?(@.name=="%s")]`, v.Name), from)},
		Fixes: []why.Fix{{Text: fmt.Sprintf("Add a key %s, or let the program use a file that is there.", name)}}}, true
}

// first reports whether no container before this one could have written into a volume.
func (p *program) first(volume string) bool {
	for _, c := range p.pod.Spec.InitContainers {
		if c.Name == p.c.Name {
			return true
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
			return false
		}
	}
	return true
}

// user is the number of the user as which the container runs; known is false if the image says it.
func (p *program) user() (id int64, field string, known bool) {
	if s := p.c.SecurityContext; s != nil && s.RunAsUser != nil {
		return *s.RunAsUser, specField(p.what, p.c.Name, "securityContext.runAsUser"), true
	}
	if s := p.pod.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		return *s.RunAsUser, ".spec.securityContext.runAsUser", true
	}
	return 0, "", false
}

// mode explains a file that the container's user may not use.
func (p *program) mode(ctx context.Context, file string) (why.Cause, bool) {
	id, field, known := p.user()
	if known && id == 0 && !overNFS(ctx, p, file) {
		return why.Cause{}, false // root may, or something else than modes forbids it
	}
	who, evidence := "the user of its image", []why.Evidence(nil)
	if known {
		who, evidence = fmt.Sprintf("user %d", id), []why.Evidence{why.See(p.self, field, fmt.Sprint(id))}
	}
	m, v := p.mount(file)
	switch {
	case m == nil && known:
		return why.Cause{Code: "UserMayNot",
			Text: fmt.Sprintf("The container runs as %s, and %s is of the image, which may be made for another "+
				"user.", who, file),
			Evidence: evidence,
			Fixes: []why.Fix{{Text: "Use the user that the image is made for, or mount a volume (an emptyDir, for " +
				"example) where it writes."}}}, true
	case m == nil || v == nil || given(v) && fsGroup(p.pod) != nil:
		return why.Cause{}, false
	case given(v):
		mode, where := fileMode(v, strings.TrimPrefix(strings.TrimPrefix(file, path.Clean(m.MountPath)), "/"))
		if mode&0o004 != 0 {
			return why.Cause{}, false
		}
		return why.Cause{Code: "FileMode",
			Text: fmt.Sprintf("The files of volume %s have the mode %04o and are root's, and the container runs "+
				"as %s, who may not read them.", v.Name, mode, who),
			Evidence: append([]why.Evidence{why.See(p.self, fmt.Sprintf(`.spec.volumes[?(@.name=="%s")]%s`, v.Name,
				where), fmt.Sprintf("%d (%04o)", mode, mode))}, evidence...),
			Fixes: []why.Fix{fixGroup, {Text: "Or give the files a mode that others may read, such as 0444."}}}, true
	}
	return volumeOwner(ctx, p, file, m, v, who, evidence)
}

// fileMode is the mode of a file in a volume of the API, and the field of the volume that says it.
func fileMode(v *corev1.Volume, name string) (mode int32, field string) {
	const usual = 0o644
	of := func(standard *int32, items []corev1.KeyToPath, where string) (int32, string) {
		for _, i := range items {
			if i.Mode != nil && path.Clean(i.Path) == name {
				return *i.Mode, where + fmt.Sprintf(`.items[?(@.path=="%s")].mode`, i.Path)
			}
		}
		if standard != nil {
			return *standard, where + ".defaultMode"
		}
		return usual, where
	}
	switch {
	case v.Secret != nil:
		return of(v.Secret.DefaultMode, v.Secret.Items, ".secret")
	case v.ConfigMap != nil:
		return of(v.ConfigMap.DefaultMode, v.ConfigMap.Items, ".configMap")
	case v.DownwardAPI != nil:
		return of(v.DownwardAPI.DefaultMode, nil, ".downwardAPI")
	}
	return of(v.Projected.DefaultMode, nil, ".projected")
}

// readOnly explains a file that cannot be written.
func (p *program) readOnly(file string) (why.Cause, bool) {
	m, v := p.mount(file)
	directory := path.Dir(file)
	switch {
	case m == nil:
		if s := p.c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			return why.Cause{}, false
		}
		return why.Cause{Code: "ReadOnlyRoot",
			Text: fmt.Sprintf("The container's file system is read-only (readOnlyRootFilesystem), and no volume is "+
				"mounted where the program writes: %s.", file),
			Evidence: []why.Evidence{why.See(p.self, specField(p.what, p.c.Name,
				"securityContext.readOnlyRootFilesystem"), "true")},
			Fixes: []why.Fix{{Text: fmt.Sprintf("Mount an emptyDir at %s.", directory)}}}, true
	case m.ReadOnly:
		return why.Cause{Code: "ReadOnlyMount",
			Text: fmt.Sprintf("Volume %s is mounted read-only at %s, where the program writes.", m.Name,
				m.MountPath),
			Evidence: []why.Evidence{p.mounted(m, "readOnly", "true")},
			Fixes:    []why.Fix{{Text: "Remove readOnly from the mount, or let the program write elsewhere."}}}, true
	case v != nil && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly:
		return why.Cause{Code: "ReadOnlyMount",
			Text: fmt.Sprintf("Volume %s, mounted at %s, takes its claim %s read-only, and the program writes there.",
				m.Name, m.MountPath, v.PersistentVolumeClaim.ClaimName),
			Evidence: []why.Evidence{why.See(p.self, fmt.Sprintf(
				`.spec.volumes[?(@.name=="%s")].persistentVolumeClaim.readOnly`, m.Name), "true")},
			Fixes: []why.Fix{{Text: "Remove readOnly from the volume, or let the program write elsewhere."}}}, true
	case v != nil && given(v):
		return why.Cause{Code: "ReadOnlyVolume",
			Text: fmt.Sprintf("Volume %s, mounted at %s, has files of the API, which nobody can write in a container.",
				m.Name, m.MountPath),
			Evidence: []why.Evidence{p.mounted(m, "name", m.Name)},
			Fixes: []why.Fix{{Text: "Let the program write elsewhere, or let an init container copy the files into " +
				"an emptyDir."}}}, true
	}
	return why.Cause{}, false
}
