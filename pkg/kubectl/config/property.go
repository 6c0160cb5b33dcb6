package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// property names a place in a kubeconfig: a top-level value, or a field of an entry of a section. Without a field it is
// the whole entry, without an entry the whole section.
type property struct{ path, section, entry, field string }

// fieldsOf are the fields that can be set in the entries of each section.
func fieldsOf(section string) []string {
	switch section {
	case "clusters":
		return []string{"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
			"certificate-authority-data", "proxy-url", "disable-compression"}
	case "contexts":
		return []string{"cluster", "user", "namespace"}
	case "users":
		return []string{"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token",
			"tokenFile", "act-as", "act-as-uid", "username", "password"}
	}
	return nil
}

// parseProperty reads "current-context", "preferences.colors" or SECTION[.ENTRY[.FIELD]]. An entry's name may contain
// dots, as those of cloud providers do, so the field is found from the end.
func parseProperty(path string) (property, error) {
	p := property{path: path}
	switch path {
	case "":
		return p, errors.New("you must specify a property")
	case "current-context", "preferences.colors":
		p.section = path
		return p, nil
	}
	section, rest, _ := strings.Cut(path, ".")
	fields := fieldsOf(section)
	if fields == nil {
		return p, fmt.Errorf("unable to parse %s after [] at api.Config", path)
	}
	p.section, p.entry = section, rest
	for _, f := range fields {
		if entry, ok := strings.CutSuffix(rest, "."+f); ok {
			p.entry, p.field = entry, f
			return p, nil
		}
	}
	if strings.Count(rest, ".") > 1 {
		return p, fmt.Errorf("unable to parse one or more field values of %s", path)
	}
	return p, nil
}

// at returns an entry of a section. With add it creates a missing one, otherwise it returns nil.
func at[V any](m map[string]*V, name string, add bool, create func() *V) *V {
	if m[name] == nil && add {
		m[name] = create()
	}
	return m[name]
}

// place returns a pointer to the value: *string, *bool or *[]byte. It is nil if the entry does not exist and add is
// false.
func (p property) place(k *clientcmdapi.Config, add bool) any {
	switch p.section {
	case "current-context":
		return &k.CurrentContext
	case "preferences.colors":
		return &k.Preferences.Colors
	case "clusters":
		if c := at(k.Clusters, p.entry, add, clientcmdapi.NewCluster); c != nil {
			return clusterField(c, p.field)
		}
	case "contexts":
		if c := at(k.Contexts, p.entry, add, clientcmdapi.NewContext); c != nil {
			return map[string]any{"cluster": &c.Cluster, "user": &c.AuthInfo, "namespace": &c.Namespace}[p.field]
		}
	case "users":
		if u := at(k.AuthInfos, p.entry, add, clientcmdapi.NewAuthInfo); u != nil {
			return userField(u, p.field)
		}
	}
	return nil
}

func clusterField(c *clientcmdapi.Cluster, name string) any {
	return map[string]any{
		"server": &c.Server, "tls-server-name": &c.TLSServerName, "insecure-skip-tls-verify": &c.InsecureSkipTLSVerify,
		"certificate-authority": &c.CertificateAuthority, "certificate-authority-data": &c.CertificateAuthorityData,
		"proxy-url": &c.ProxyURL, "disable-compression": &c.DisableCompression,
	}[name]
}

func userField(u *clientcmdapi.AuthInfo, name string) any {
	return map[string]any{
		"client-certificate": &u.ClientCertificate, "client-certificate-data": &u.ClientCertificateData,
		"client-key": &u.ClientKey, "client-key-data": &u.ClientKeyData, "token": &u.Token, "tokenFile": &u.TokenFile,
		"act-as": &u.Impersonate, "act-as-uid": &u.ImpersonateUID, "username": &u.Username, "password": &u.Password,
	}[name]
}

// set writes value to p, and creates a missing entry. Values of bytes, such as certificates, are base64 unless raw.
func (p property) set(k *clientcmdapi.Config, value string, raw bool) (err error) {
	if p.field == "" && fieldsOf(p.section) != nil {
		return fmt.Errorf("can't set a map to a value: %s", p.path)
	}
	switch v := p.place(k, true).(type) {
	case *string:
		*v = value
	case *bool:
		*v, err = strconv.ParseBool(value)
	case *[]byte:
		if raw {
			*v = []byte(value)
			return nil
		}
		if *v, err = base64.StdEncoding.DecodeString(value); err != nil {
			return fmt.Errorf("error decoding input value: %w", err)
		}
	}
	return err
}

// unset removes the value at p, the entry or the section.
func (p property) unset(k *clientcmdapi.Config) error {
	if p.field == "" && fieldsOf(p.section) != nil {
		p.clear(k)
		return nil
	}
	switch v := p.place(k, false).(type) {
	case nil:
		return fmt.Errorf("current map key `%s` is invalid", p.entry)
	case *string:
		*v = ""
	case *bool:
		*v = false
	case *[]byte:
		*v = nil
	}
	return nil
}

// clear removes the entry, or all entries of the section.
func (p property) clear(k *clientcmdapi.Config) {
	switch p.section {
	case "clusters":
		without(k.Clusters, p.entry)
	case "contexts":
		without(k.Contexts, p.entry)
	case "users":
		without(k.AuthInfos, p.entry)
	}
}

// without removes an entry, or all entries if name is "".
func without[V any](m map[string]V, name string) {
	if name == "" {
		clear(m)
		return
	}
	delete(m, name)
}

func (c *command) set() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "set PROPERTY_NAME PROPERTY_VALUE", Short: "Set an individual value in a kubeconfig file",
		Args:    exactly(2),
		Long:    "Set an individual value in a kubeconfig file.\n\n PROPERTY_NAME is a path of names with dots between them: current-context, or a section (clusters, contexts, users), an entry and one of its fields.\n\n Data of certificates and keys is given in base64, or as it is with --set-raw-bytes.",
		Example: "# Point a cluster to another server\nkubectl config set clusters.my-cluster.server https://1.2.3.4",
		RunE: func(_ *cobra.Command, args []string) error {
			return c.property(args[0], "set", func(p property, k *clientcmdapi.Config) error {
				return p.set(k, args[1], raw)
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "set-raw-bytes", false,
		"When writing a []byte PROPERTY_VALUE, write the given string directly without base64 decoding.")
	return cmd
}

func (c *command) unset() *cobra.Command {
	return &cobra.Command{
		Use: "unset PROPERTY_NAME", Short: "Unset an individual value in a kubeconfig file", Args: exactly(1),
		Long:    "Unset an individual value in a kubeconfig file.\n\n PROPERTY_NAME is a path of names with dots between them, as for \"kubectl config set\".",
		Example: "# Forget the namespace of a context\nkubectl config unset contexts.foo.namespace",
		RunE: func(_ *cobra.Command, args []string) error {
			return c.property(args[0], "unset", property.unset)
		},
	}
}

// property lets edit change one property and says what was done.
func (c *command) property(path, done string, edit func(property, *clientcmdapi.Config) error) error {
	p, err := parseProperty(path)
	if err != nil {
		return err
	}
	if err := c.change(func(k *clientcmdapi.Config) error { return edit(p, k) }); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "Property %q %s.\n", path, done)
	return nil
}
