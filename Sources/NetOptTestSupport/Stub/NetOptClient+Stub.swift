import NetOptCore
public import NetOpt

extension NetOptClient {
  /// Makes a client whose requests go to a stub: nothing is sent, and nothing is known of this machine's network. It shuts the stub down
  /// with itself, and takes its resolver and its clock.
  ///
  /// ```swift
  /// let transport = StubTransport([IPAddress("192.0.2.1")!: .respond(200, body: Array("{}".utf8))])
  /// var configuration = ClientConfiguration()
  /// configuration.list = .list(list)
  /// let client = try NetOptClient(configuration, transport: transport)
  /// ```
  ///
  /// - Parameters:
  ///   - configuration: as that of a real client. A ranking is kept only in a directory that it names.
  ///   - transport: what becomes of the requests.
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the list, `invalidConfiguration` for a setting that makes no sense.
  public convenience init(
    _ configuration: ClientConfiguration = ClientConfiguration(), transport: StubTransport
  ) throws(NetOptError) {
    try self.init(
      configuration, transport: transport, resolver: transport.resolver, timeSource: transport.timeSource)
  }
}
