// How much is read of a proxy's answer to CONNECT (docs/adr/0023).

extension Transfer {
  /// libcurl has read something of a proxy's answer to CONNECT, a byte at a time. It reads as long as something comes, keeps every field, and hands
  /// over nothing.
  ///
  /// - Returns: whether it goes on.
  func mayGoOn() -> Bool {
    if let tunnelReads { self.tunnelReads = tunnelReads + 1 }
    return !hasEndlessTunnel
  }

  /// The connection is ready, also one that libcurl has opened to send the request again.
  func cameToGate() { tunnelReads = nil }

  /// Whether a connection is being opened: the first one, or one that libcurl has the request sent again on.
  var isConnecting: Bool { tunnelReads != nil }

  /// Whether the answer to CONNECT was longer than what is read of one.
  var hasEndlessTunnel: Bool { (tunnelReads ?? 0) > ProxyRefusal.mostRead }
}
