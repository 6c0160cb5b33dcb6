# A node: containerd, runc and the CNI plug-ins of Debian, and ours.
FROM scratch
ADD rootfs.tar /
COPY bin/ /opt/bonsai/bin/
ENV PATH=/opt/bonsai/bin:/usr/sbin:/usr/bin:/sbin:/bin
