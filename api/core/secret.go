package core

import (
	"crypto/tls"
	"encoding/json"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func secretRow() resources.Row {
	doc := corev1.Secret{}.SwaggerDoc()
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets", Singular: "secret",
		Namespaced:  true,
		StoragePath: "secrets",
		New:         resources.Make[corev1.Secret],
		Strategy: resources.Typed[*corev1.Secret]{
			Default: defaultSecret,
			PrepareUpdate: func(obj, old *corev1.Secret) {
				defaults.Set(&obj.Type, old.Type)
			},
			Validate:       validateSecret,
			ValidateUpdate: validateSecretUpdate,
			Warnings:       secretWarnings,
		}.Strategy(),
		FieldNames: []string{"type"},
		Fields: resources.Fields(func(s *corev1.Secret) fields.Set {
			return fields.Set{"type": string(s.Type)}
		}),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Type", doc["type"]),
			resources.Column("Data", doc["data"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(s *corev1.Secret, now time.Time) []any {
			return []any{s.Name, string(s.Type), int64(len(s.Data)), resources.Age(s.CreationTimestamp, now)}
		}),
	}
}

// defaultSecret gives a secret its type and moves stringData, which is for writing only, into data.
func defaultSecret(s *corev1.Secret) {
	defaults.Set(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for k, v := range s.StringData {
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
	for k, v := range s.Data {
		if v == nil { // null, which storage keeps as empty
			s.Data[k] = []byte{}
		}
	}
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	total := 0
	for k, v := range s.Data {
		errs = append(errs, validate.Invalid(data.Key(k), k, validation.IsConfigMapKey(k))...)
		total += len(v)
	}
	if total > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	need := func(keys ...string) {
		for _, k := range keys {
			if _, ok := s.Data[k]; !ok {
				errs = append(errs, field.Required(data.Key(k), ""))
			}
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(
				field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		errs = append(errs, jsonValue(s.Data, corev1.DockerConfigKey, data)...)
	case corev1.SecretTypeDockerConfigJson:
		errs = append(errs, jsonValue(s.Data, corev1.DockerConfigJsonKey, data)...)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			need(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}

// jsonValue checks that a key is there and holds JSON; the value itself is not shown.
func jsonValue(data map[string][]byte, key string, path *field.Path) field.ErrorList {
	v, ok := data[key]
	if !ok {
		return field.ErrorList{field.Required(path.Key(key), "")}
	}
	if err := json.Unmarshal(v, &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(path.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateSecretUpdate(obj, old *corev1.Secret) field.ErrorList {
	errs := apivalidation.ValidateImmutableField(obj.Type, old.Type, field.NewPath("type"))
	if isTrue(old.Immutable) {
		if !isTrue(obj.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableField("immutable")))
		}
		if !reflect.DeepEqual(obj.Data, old.Data) { // for which, as in Kubernetes, {} is not the same as nothing
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutableField("immutable")))
		}
	}
	return append(errs, validateSecret(obj)...)
}

// secretWarnings tells when the two halves of a TLS secret are no key pair.
func secretWarnings(s, _ *corev1.Secret) []string {
	if s.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}
