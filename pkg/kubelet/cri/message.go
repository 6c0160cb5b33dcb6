package cri

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/filetree"
)

// Bounds of a termination message: 4096 bytes from the file, 2048 bytes or 80 lines from the log
// (https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/).
const (
	maxMessageFile  = 4096
	maxMessageLog   = 2048
	maxMessageLines = 80
	maxLogTail      = 64 << 10
)

// terminationMessage returns what an exited container left: its termination message file, or the end of its log if the
// policy says so and the container failed. made reports whether the kubelet made a file for that message. A volume that
// is mounted at the message's path is the pod's own, and its content is not read.
func terminationMessage(s *runtimeapi.ContainerStatus, exit int32, made func(path string) bool) string {
	for _, m := range s.Mounts {
		if made(m.HostPath) {
			if text := fileMessage(m.HostPath); text != "" {
				return text
			}
		}
	}
	policy := corev1.TerminationMessagePolicy(s.Annotations[annotationTerminationMessagePolicy])
	if policy == corev1.TerminationMessageFallbackToLogsOnError && exit != 0 {
		return logMessage(s.LogPath)
	}
	return ""
}

// fileMessage reads a termination message file, "" if it cannot be read. The container can write anything into the
// file, and of any length: only its beginning is read.
func fileMessage(path string) string {
	f, err := filetree.OpenFile(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMessageFile))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// logMessage returns the last lines of a log in CRI format, without its prefixes. It reads at most the last maxLogTail
// bytes of the file. The first line there may be cut.
func logMessage(path string) string {
	f, err := filetree.OpenFile(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > maxLogTail {
		_, err = f.Seek(end-maxLogTail, io.SeekStart)
		if err != nil {
			return ""
		}
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	var lines []string
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if text, ok := logText(line); ok {
			lines = append(lines, text)
		}
		if errors.Is(err, io.EOF) || err != nil {
			break
		}
	}
	if len(lines) > maxMessageLines {
		lines = lines[len(lines)-maxMessageLines:]
	}
	text := strings.Join(lines, "")
	if len(text) > maxMessageLog {
		text = text[len(text)-maxMessageLog:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// logText is the payload of one line "<time> <stream> <tag> <text>"; a partial line (tag P) keeps no newline.
func logText(line []byte) (string, bool) {
	parts := bytes.SplitN(line, []byte(" "), 4)
	if len(parts) != 4 {
		return "", false
	}
	text := string(parts[3])
	if string(parts[2]) == "P" {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, true
}
