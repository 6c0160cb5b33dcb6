package create

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubectl/cli"
)

const secretLong = `Create a secret with specified type.

 A docker-registry type secret is for accessing a container registry.

 A generic type secret indicate an Opaque secret type.

 A tls type secret holds TLS certificate and its associated key.`

func newSecret(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return newParent(f, streams, "secret (docker-registry | generic | tls)", nil,
		"Create a secret using a specified subcommand", secretLong,
		dockerSecret(), genericSecret(), tlsSecret())
}

// secret returns a Secret with the entries. It refuses wrong and repeated keys here, as a map would silently keep the
// last of them.
func (g *generator) secret(t corev1.SecretType, hash bool, entries ...entry) (runtime.Object, error) {
	s := &corev1.Secret{TypeMeta: core("Secret"), ObjectMeta: g.meta(), Type: t}
	for _, e := range entries {
		if errs := validation.IsConfigMapKey(e.key); len(errs) > 0 {
			return nil, fmt.Errorf("%q is not valid key name for a Secret %s", e.key, strings.Join(errs, ";"))
		}
		if _, ok := s.Data[e.key]; ok {
			return nil, fmt.Errorf("cannot add key %s, another key by that name already exists", e.key)
		}
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[e.key] = e.value
	}
	if hash {
		content := map[string]any{"kind": "Secret", "type": s.Type, "name": s.Name, "data": s.Data}
		if len(s.Data) == 0 {
			content["data"] = ""
		}
		suffix, err := hashSuffix(content)
		if err != nil {
			return nil, err
		}
		s.Name += suffix
	}
	return s, nil
}

func genericSecret() kind {
	var s sources
	var t string
	return kind{
		use:     "generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none]",
		short:   "Create a secret from a local file, directory, or literal value",
		long:    "Create a secret based on a file, directory, or specified literal value.",
		example: "  # Create a new secret named my-secret with key1=supersecret and key2=topsecret\n  kubectl create secret generic my-secret --from-literal=key1=supersecret --from-literal=key2=topsecret",
		failed:  "failed to create secret ",
		flags: func(set *pflag.FlagSet) {
			s.add(set)
			set.StringVar(&t, "type", "", "The type of secret to create")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			entries, err := s.entries()
			if err != nil {
				return nil, err
			}
			return g.secret(corev1.SecretType(t), s.hash, entries...)
		},
	}
}

func tlsSecret() kind {
	var cert, key string
	var hash bool
	return kind{
		use:     "tls NAME --cert=path/to/cert/file --key=path/to/key/file [--dry-run=server|client|none]",
		example: "  # Create a secret of a certificate and its key\n  kubectl create secret tls web --cert=web.crt --key=web.key",
		short:   "Create a TLS secret",
		long:    "Create a TLS secret from the given public/private key pair.",
		failed:  "failed to create secret ",
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&cert, "cert", "", "Path to PEM encoded public key certificate.")
			set.StringVar(&key, "key", "", "Path to private key associated with given certificate.")
			set.BoolVar(&hash, "append-hash", false, "Append a hash of the secret to its name.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			if cert == "" || key == "" {
				return nil, errors.New("key and cert must be specified")
			}
			c, err := readFile(cert)
			if err != nil {
				return nil, err
			}
			k, err := readFile(key)
			if err != nil {
				return nil, err
			}
			if _, err := tls.X509KeyPair(c, k); err != nil {
				return nil, err
			}
			return g.secret(corev1.SecretTypeTLS, hash, entry{corev1.TLSCertKey, c}, entry{corev1.TLSPrivateKeyKey, k})
		},
	}
}

func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("Cannot read file %s, %w", path, err)
	}
	return data, nil
}

// dockerConfig is ~/.docker/config.json as far as registries' credentials go.
type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Email    string `json:"email,omitempty"`
	Auth     string `json:"auth,omitempty"`
}

func dockerSecret() kind {
	var server, user, password, email string
	var files []string
	var hash bool
	return kind{
		use:     "docker-registry NAME --docker-username=user --docker-password=password --docker-email=email [--docker-server=string] [--from-file=[key=]source] [--dry-run=server|client|none]",
		example: "  # Create a secret for a registry\n  kubectl create secret docker-registry registry --docker-server=registry.example.com --docker-username=ann --docker-password=word --docker-email=ann@example.com\n\n  # Create it from a file of docker login\n  kubectl create secret docker-registry registry --from-file=.dockerconfigjson=config.json",
		short:   "Create a secret for use with a Docker registry",
		long:    "Create a new secret for use with Docker registries.",
		failed:  "failed to create secret ",
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&user, "docker-username", "", "Username for Docker registry authentication")
			set.StringVar(&password, "docker-password", "", "Password for Docker registry authentication")
			set.StringVar(&email, "docker-email", "", "Email for Docker registry")
			set.StringVar(&server, "docker-server", "https://index.docker.io/v1/",
				"Server location for Docker registry")
			set.BoolVar(&hash, "append-hash", false, "Append a hash of the secret to its name.")
			set.StringSliceVar(&files, "from-file", nil,
				"Key files can be specified using their file path, in which case a default name of "+
					corev1.DockerConfigJsonKey+
					" will be given to them, or optionally with a name and file path, in which case the given name will be used.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			if len(files) > 0 {
				return dockerFromFiles(g, files, hash)
			}
			if user == "" || password == "" || server == "" {
				return nil, errors.New("either --from-file or the combination of --docker-username, --docker-password and --docker-server is required")
			}
			data, err := json.Marshal(dockerConfig{Auths: map[string]dockerAuth{server: {
				Username: user, Password: password, Email: email,
				Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
			}}})
			if err != nil {
				return nil, err
			}
			return g.secret(corev1.SecretTypeDockerConfigJson, hash, entry{corev1.DockerConfigJsonKey, data})
		},
	}
}

// dockerFromFiles returns a registry Secret with the files as they are; a file without a key gets the standard one.
func dockerFromFiles(g *generator, files []string, hash bool) (runtime.Object, error) {
	var entries []entry
	for _, f := range files {
		if !strings.Contains(f, "=") {
			f = corev1.DockerConfigJsonKey + "=" + f
		}
		more, err := fromFile(f)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return g.secret(corev1.SecretTypeDockerConfigJson, hash, entries...)
}
