# A control plane's programs and nothing else: no shell, no libraries.
FROM scratch
COPY bin/ /opt/bonsai/bin/
ENV PATH=/opt/bonsai/bin
