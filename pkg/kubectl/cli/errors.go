package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// ExitError ends kubectl with Code. A nil Err says nothing: what was to say has been said.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Silent is an error that was already shown: exit code 1 and no message.
func Silent() error { return &ExitError{Code: 1} }

// UsageErrorf is a mistake in the command line: the message, and where to read how it is done.
func UsageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s\nSee '%s -h' for help and examples", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// emptyConfig is what a user without any kubeconfig reads.
const emptyConfig = `Missing or incomplete configuration info.  Please point to an existing, complete config file:


  1. Via the command-line flag --kubeconfig
  2. Via the KUBECONFIG environment variable
  3. In your home directory as ~/.kube/config

To view or setup config directly use the 'config' command.`

// Report shows err on w as kubectl words it and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code := 1
	var exit *ExitError
	if errors.As(err, &exit) {
		code = exit.Code
		if exit.Err == nil {
			return code
		}
		if err == error(exit) {
			err = exit.Err
		}
	}
	for _, message := range messages(err) {
		fmt.Fprintln(w, strings.TrimSuffix(message, "\n"))
	}
	return code
}

// messages are the lines for err: one for each error of an aggregate.
func messages(err error) []string {
	all, several := err.(utilerrors.Aggregate)
	for several && len(all.Errors()) == 1 {
		err = all.Errors()[0]
		all, several = err.(utilerrors.Aggregate)
	}
	if !several {
		return []string{message(err, "error: ")}
	}
	var out []string
	if clientcmd.IsConfigurationInvalid(err) {
		out = append(out, "Error in configuration: ")
		for _, e := range all.Errors() {
			out = append(out, "* "+e.Error())
		}
		return out
	}
	for _, e := range all.Errors() {
		if status := apierrors.APIStatus(nil); apierrors.IsInvalid(e) && errors.As(e, &status) {
			out = append(out, statusMessage(status.Status(), e)) // its causes are listed only if it is the one error
			continue
		}
		out = append(out, message(e, ""))
	}
	return out
}

// Message words one error as kubectl does, without the leading "error: " that plain errors get at the end of a run.
func Message(err error) string { return message(err, "") }

func message(err error, prefix string) string {
	var status apierrors.APIStatus
	var kind *meta.NoKindMatchError
	var u *url.Error
	var plain interface{ Plain() bool }
	if errors.As(err, &plain) && plain.Plain() {
		return err.Error()
	}
	switch {
	case errors.As(err, &status) && apierrors.IsInvalid(err):
		return invalid(status.Status(), err)
	case clientcmd.IsEmptyConfig(err):
		return prefix + emptyConfig
	case clientcmd.IsConfigurationInvalid(err):
		return "Error in configuration: " + err.Error()
	case clientcmd.IsContextNotFound(err):
		return "Error in configuration: " + err.Error()
	case errors.As(err, &status) && apierrors.IsUnauthorized(err):
		return "error: You must be logged in to the server (" + err.Error() + ")"
	case errors.As(err, &status):
		return statusMessage(status.Status(), err)
	case errors.As(err, &kind) && err == error(kind):
		return prefix + "resource mapping not found: " + err.Error()
	case errors.As(err, &u):
		return urlMessage(u, err, prefix)
	}
	return prefix + strings.TrimPrefix(err.Error(), prefix)
}

// statusMessage words a refusal of the server: "Error from server (NotFound): pods "x" not found".
func statusMessage(s metav1.Status, err error) string {
	wrapped := ""
	if own := s.Message; own != "" && err.Error() != own {
		wrapped = strings.TrimSuffix(err.Error(), own) // "error when creating "f.yaml": "
	}
	if s.Reason == metav1.StatusReasonUnknown || s.Reason == "" {
		return "Error from server: " + wrapped + s.Message
	}
	return fmt.Sprintf("Error from server (%s): %s%s", s.Reason, wrapped, s.Message)
}

// invalid lists the causes of a refused object, each on a line of its own if they are several.
func invalid(s metav1.Status, err error) string {
	if s.Details == nil || len(s.Details.Causes) == 0 && s.Details.Kind == "" {
		return "The request is invalid" + suffix(s.Message)
	}
	head := fmt.Sprintf("The %s %q is invalid", s.Details.Kind, s.Details.Name)
	if s.Details.Kind == "" {
		head = "The request is invalid"
	}
	var causes []string
	seen := map[string]bool{}
	for _, c := range s.Details.Causes {
		line := c.Message
		if c.Field != "" {
			line = c.Field + ": " + c.Message
		}
		if !seen[line] {
			seen[line] = true
			causes = append(causes, line)
		}
	}
	switch len(causes) {
	case 0:
		return head + suffix(s.Message)
	case 1:
		return head + ": " + causes[0]
	}
	return head + ": \n* " + strings.Join(causes, "\n* ")
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// urlMessage words a request that got no answer.
func urlMessage(u *url.Error, err error, prefix string) string {
	host := u.URL
	if parsed, e := url.Parse(u.URL); e == nil {
		host = parsed.Host
	}
	switch {
	case errors.Is(u.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?",
			host)
	case strings.Contains(u.Err.Error(), "x509:") || strings.Contains(u.Err.Error(), "tls:") ||
		strings.Contains(u.Err.Error(), "no such host"):
		return "Unable to connect to the server: " + u.Err.Error()
	case strings.Contains(u.Err.Error(), "Client.Timeout") || strings.Contains(u.Err.Error(), "timeout"):
		return "Unable to connect to the server: " + u.Err.Error()
	case err == error(u):
		return "Unable to connect to the server: " + u.Err.Error()
	}
	return prefix + err.Error()
}
