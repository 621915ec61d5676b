/// How an endpoint is probed.
public enum ProbeMethod: String, Hashable, Sendable, CaseIterable {
  /// A TCP handshake. It shows that something answers there: a middlebox may do that for anyone.
  case tcp
  /// TCP and a full TLS handshake, with the host's name in SNI and the certificate verified.
  case tls
}
