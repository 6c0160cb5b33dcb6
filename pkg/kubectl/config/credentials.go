package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// execFlags are the flags of the program that provides credentials (an exec plug-in).
type execFlags struct {
	command, apiVersion, mode string
	args, env                 []string
	clusterInfo               bool
}

func (c *command) setCredentials() *cobra.Command {
	var embed bool
	e, provider := &execFlags{}, &providerFlags{}
	cmd := &cobra.Command{Use: "set-credentials NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token] [--username=basic_user] [--password=basic_password] [--auth-provider=provider_name] [--auth-provider-arg=key=value] [--exec-command=exec_command] [--exec-api-version=exec_api_version] [--exec-arg=arg] [--exec-env=key=value]", Example: "# Set the certificate of a user, and keep what else is there\nkubectl config set-credentials admin --client-certificate=admin.crt --client-key=admin.key\n\n# Write them into the file\nkubectl config set-credentials admin --client-certificate=admin.crt --client-key=admin.key --embed-certs=true\n\n# Ask a program for credentials\nkubectl config set-credentials robot --exec-command=/opt/login --exec-api-version=client.authentication.k8s.io/v1 --exec-arg=one\n\n# Log in with OpenID Connect\nkubectl config set-credentials ann --auth-provider=oidc --auth-provider-arg=idp-issuer-url=https://accounts.example --auth-provider-arg=client-id=cluster\n\n# Forget an argument of the provider\nkubectl config set-credentials ann --auth-provider-arg=client-secret-", Short: "Set a user entry in kubeconfig", Args: named("user"), RunE: func(cmd *cobra.Command, args []string) error {
		if err := oneMethod(cmd); err != nil {
			return err
		}
		if err := readable(cmd, embed, "client-certificate", "client-key"); err != nil {
			return err
		}
		err := c.change(func(k *clientcmdapi.Config) error {
			x := at(k.AuthInfos, args[0], true, clientcmdapi.NewAuthInfo)
			credentials(cmd, embed, x)
			if err := provider.apply(x); err != nil {
				return err
			}
			return e.apply(cmd, x)
		})
		if err == nil {
			fmt.Fprintf(c.Out, "User %q set.\n", args[0])
		}
		return err
	}}
	set := cmd.Flags()
	set.String("client-certificate", "", "Path to client-certificate file for the user entry in kubeconfig")
	set.String("client-key", "", "Path to client-key file for the user entry in kubeconfig")
	set.String("token", "", "token for the user entry in kubeconfig")
	set.String("username", "", "username for the user entry in kubeconfig")
	set.String("password", "", "password for the user entry in kubeconfig")
	set.BoolVar(&embed, "embed-certs", false, "Embed client cert/key for the user entry in kubeconfig")
	set.StringVar(&provider.name, "auth-provider", "", "Auth provider for the user entry in kubeconfig")
	set.StringSliceVar(&provider.args, "auth-provider-arg", nil, "'key=value' arguments for the auth provider")
	set.StringVar(&e.command, "exec-command", "",
		"Command for the exec credential plugin for the user entry in kubeconfig")
	set.StringVar(&e.apiVersion, "exec-api-version", "",
		"API version of the exec credential plugin for the user entry in kubeconfig")
	set.StringVar(&e.mode, "exec-interactive-mode", "",
		"InteractiveMode of the exec credentials plugin for the user entry in kubeconfig")
	set.BoolVar(&e.clusterInfo, "exec-provide-cluster-info", false,
		"ProvideClusterInfo of the exec credentials plugin for the user entry in kubeconfig")
	set.StringSliceVar(&e.args, "exec-arg", nil,
		"New arguments for the exec credential plugin command for the user entry in kubeconfig")
	set.StringArrayVar(&e.env, "exec-env", nil, "'key=value' environment values for the exec credential plugin")
	return cmd
}

// oneMethod refuses both a token and a password.
func oneMethod(cmd *cobra.Command) error {
	var token, username, password string
	said(cmd, "token", &token)
	said(cmd, "username", &username)
	said(cmd, "password", &password)
	if token != "" && username+password != "" {
		return errors.New("you cannot specify more than one authentication method at the same time: --token, --username/--password")
	}
	return nil
}

// credentials writes the flags into x. A token replaces a password and the other way round: client-go refuses a user
// with both.
func credentials(cmd *cobra.Command, embed bool, x *clientcmdapi.AuthInfo) {
	token, basic := cmd.Flag("token").Changed, cmd.Flag("username").Changed || cmd.Flag("password").Changed
	said(cmd, "token", &x.Token)
	said(cmd, "username", &x.Username)
	said(cmd, "password", &x.Password)
	switch {
	case token && x.Token != "":
		x.TokenFile, x.Username, x.Password = "", "", ""
	case basic && x.Username+x.Password != "":
		x.Token, x.TokenFile = "", ""
	}
	file(cmd, "client-certificate", embed, &x.ClientCertificate, &x.ClientCertificateData)
	file(cmd, "client-key", embed, &x.ClientKey, &x.ClientKeyData)
}

// providerFlags are the flags of an identity provider that is built into client-go.
type providerFlags struct {
	name string
	args []string
}

// apply writes the provider's flags into x and keeps its other arguments. An argument "NAME-" removes NAME.
func (p *providerFlags) apply(x *clientcmdapi.AuthInfo) error {
	set, removed := map[string]string{}, []string(nil)
	for _, arg := range p.args {
		name, value, ok := strings.Cut(arg, "=")
		bare, remove := strings.CutSuffix(name, "-")
		switch {
		case ok:
			set[name] = value
		case remove:
			removed = append(removed, bare)
		default:
			return fmt.Errorf("invalid auth-provider-arg format: %s", arg)
		}
	}
	if p.name != "" {
		old := x.AuthProvider
		x.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: p.name}
		if old != nil {
			x.AuthProvider.Config = old.Config
		}
	}
	if x.AuthProvider == nil {
		return nil
	}
	if x.AuthProvider.Config == nil {
		x.AuthProvider.Config = map[string]string{}
	}
	for _, name := range removed {
		delete(x.AuthProvider.Config, name)
	}
	maps.Copy(x.AuthProvider.Config, set)
	return nil
}

// apply writes the program's flags into x. A variable "NAME-" removes NAME. Without --exec-command it changes only a
// program that is there already.
func (e *execFlags) apply(cmd *cobra.Command, x *clientcmdapi.AuthInfo) error {
	changed := cmd.Flags().Changed
	set, removed, err := e.variables()
	if err != nil {
		return err
	}
	if x.Exec == nil {
		if e.command == "" {
			return nil
		}
		x.Exec = &clientcmdapi.ExecConfig{}
	}
	said(cmd, "exec-command", &x.Exec.Command)
	said(cmd, "exec-api-version", &x.Exec.APIVersion)
	if changed("exec-interactive-mode") {
		x.Exec.InteractiveMode = clientcmdapi.ExecInteractiveMode(e.mode)
	}
	if changed("exec-provide-cluster-info") {
		x.Exec.ProvideClusterInfo = e.clusterInfo
	}
	if changed("exec-arg") {
		x.Exec.Args = e.args
	}
	for _, v := range set {
		x.Exec.Env = slices.DeleteFunc(x.Exec.Env, func(had clientcmdapi.ExecEnvVar) bool { return had.Name == v.Name })
		x.Exec.Env = append(x.Exec.Env, v)
	}
	x.Exec.Env = slices.DeleteFunc(x.Exec.Env, func(had clientcmdapi.ExecEnvVar) bool {
		return slices.Contains(removed, had.Name)
	})
	return nil
}

// variables splits --exec-env into variables to set and names to remove, and refuses anything else.
func (e *execFlags) variables() (set []clientcmdapi.ExecEnvVar, removed []string, err error) {
	for _, pair := range e.env {
		name, value, ok := strings.Cut(pair, "=")
		bare, remove := strings.CutSuffix(pair, "-")
		switch {
		case ok && name != "":
			set = append(set, clientcmdapi.ExecEnvVar{Name: name, Value: value})
		case !ok && remove:
			removed = append(removed, bare)
		default:
			return nil, nil, fmt.Errorf("invalid exec-env format: %s", pair)
		}
	}
	return set, removed, nil
}

// readable checks the files of the flags before anything is changed, if their data is to be embedded.
func readable(cmd *cobra.Command, embed bool, flags ...string) error {
	for _, flag := range flags {
		path := ""
		if said(cmd, flag, &path); !embed || path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("could not stat %s file %s: %w", flag, path, err)
		}
	}
	return nil
}

// file writes the flag's path to path, or with embed the file's content to data, and reports whether the user named a
// file. A path becomes absolute, as kubectl will run in other directories.
func file(cmd *cobra.Command, flag string, embed bool, path *string, data *[]byte) bool {
	f := cmd.Flag(flag)
	if f == nil || !f.Changed {
		return false
	}
	*path = f.Value.String()
	if *path == "" {
		return false
	}
	if content, err := os.ReadFile(*path); embed && err == nil {
		*path, *data = "", content
		return true
	}
	if abs, err := filepath.Abs(*path); err == nil {
		*path = abs
	}
	*data = nil
	return true
}
