/// Groups of codes that programs handle alike.
extension NetOptError.Code {
  /// Whether the certificate of the server was refused: its name, its issuer, its dates or its key.
  public var isCertificate: Bool {
    switch self {
    case .certificateName, .certificateUntrusted, .certificateExpired, .certificatePin: true
    default: false
    }
  }

  /// Whether the server could not be reached, or its connection was lost: no address, no connection, no TLS,
  /// no response, or only a part of one. Timeouts and the certificate of the server are not in this group. A
  /// refused client certificate (`tlsFailed`) and a request body that failed (`sendFailed`) are.
  public var isConnection: Bool {
    switch self {
    case .nameNotFound, .resolverFailed, .connectFailed, .proxyFailed, .tlsFailed, .sendFailed,
      .receiveFailed:
      true
    default: false
    }
  }
}
