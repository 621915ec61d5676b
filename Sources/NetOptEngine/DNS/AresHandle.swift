import CAres
import Glibc
import NetOptCore

/// The owner of an `ares_channel`: ares_init_options(3), ares_destroy(3).
struct AresHandle: ~Copyable {
  let channel: ares_channel
  /// The channel's sockets. c-ares holds an unretained pointer to this object and uses it until ares_destroy
  /// returns.
  let sockets: AresSockets

  private init(_ channel: ares_channel, _ sockets: AresSockets) {
    self.channel = channel
    self.sockets = sockets
  }

  deinit {
    // ares_destroy closes sockets with the functions of `sockets`.
    withExtendedLifetime(sockets) { ares_destroy(channel) }
  }

  /// Opens a channel.
  ///
  /// - Parameters:
  ///   - servers: the name servers to query. When empty, the channel uses the system's name servers.
  ///   - callback: c-ares calls it when it wants a descriptor watched or no longer watched.
  ///   - data: the first argument of each call of `callback`. Must stay valid while the channel has look-ups
  ///     under way.
  /// - Throws: `resolverFailed` with c-ares's status.
  static func open(
    _ configuration: ResolverConfiguration, servers: [IPEndpoint], callback: @escaping ares_sock_state_cb,
    data: UnsafeMutableRawPointer
  ) throws(NetOptError) -> AresHandle {
    guard AresLibrary.status == netopt_ares_success else { throw AresStatus.setUpError(AresLibrary.status) }
    var options = ares_options()
    options.timeout = Int32(configuration.timeout.nanoseconds / 1_000_000)
    options.tries = Int32(configuration.tries)
    options.sock_state_cb = callback
    options.sock_state_cb_data = data
    // c-ares copies the path.
    options.resolvconf_path = strdup(configuration.systemFile)
    defer { free(options.resolvconf_path) }
    let withoutCache = netopt_ares_without_cache(&options)
    let withoutAliases = netopt_ares_without_aliases(&options)
    var channel: ares_channel?
    let status = ares_init_options(
      &channel, &options,
      ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF | withoutCache
        | withoutAliases)
    guard status == netopt_ares_success, let channel else { throw AresStatus.setUpError(status) }
    let handle = AresHandle(channel, AresSockets())
    // Must come before c-ares opens the first socket.
    netopt_ares_set_socket_functions(channel, handle.sockets.functions, handle.sockets.argument)
    if servers.isEmpty { return handle }
    let list = servers.map(\.description).joined(separator: ",")
    let listStatus = ares_set_servers_ports_csv(channel, list)
    guard listStatus == netopt_ares_success else { throw AresStatus.setUpError(listStatus) }
    return handle
  }
}
