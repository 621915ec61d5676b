import NetOptCore
public import NetOpt

extension NetOptClient {
  /// Creates a client that sends its requests to a stub. The client sends nothing to a network and learns
  /// nothing about the network of this machine. It uses the resolver and the clock of the stub, and shuts the
  /// stub down when it shuts down.
  ///
  /// ```swift
  /// let transport = StubTransport([IPAddress("192.0.2.1")!: .respond(200, body: Array("{}".utf8))])
  /// var configuration = ClientConfiguration()
  /// configuration.list = .list(list)
  /// let client = try NetOptClient(configuration, transport: transport)
  /// ```
  ///
  /// - Parameters:
  ///   - configuration: the configuration of the client. The client saves its ranking only in a directory
  ///     that the configuration names.
  ///   - transport: the stub, which decides the outcome of each request.
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the list, `invalidConfiguration` for
  ///   a setting out of range.
  public convenience init(
    _ configuration: ClientConfiguration = ClientConfiguration(), transport: StubTransport
  ) throws(NetOptError) {
    try self.init(
      configuration, transport: transport, resolver: transport.resolver, timeSource: transport.timeSource)
  }
}
