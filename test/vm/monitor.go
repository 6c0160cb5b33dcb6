package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

func (m *Machine) monitor() string { return filepath.Join(m.config.Dir, "monitor") }

// Pause stops the machine's processor: its clocks stand still, and it answers nobody.
func (m *Machine) Pause(ctx context.Context) error { return m.command(ctx, "stop") }

// Resume lets a paused machine go on.
func (m *Machine) Resume(ctx context.Context) error { return m.command(ctx, "cont") }

// WakeUp ends the suspension of a machine that has suspended itself to memory.
func (m *Machine) WakeUp(ctx context.Context) error { return m.command(ctx, "system_wakeup") }

// command has qemu carry out a command of its monitor protocol (QMP) that takes no arguments.
func (m *Machine) command(ctx context.Context, name string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", m.monitor())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	answers := json.NewDecoder(conn)
	for _, command := range []string{"qmp_capabilities", name} {
		if err := json.NewEncoder(conn).Encode(map[string]string{"execute": command}); err != nil {
			return err
		}
		for answered := false; !answered; {
			// A greeting and events come between.
			var answer struct {
				Return *json.RawMessage
				Error  *struct{ Desc string }
			}
			if err := answers.Decode(&answer); err != nil {
				return fmt.Errorf("qemu's answer to %s: %w", command, err)
			}
			if answer.Error != nil {
				return errors.New(command + ": " + answer.Error.Desc)
			}
			answered = answer.Return != nil
		}
	}
	return nil
}
