import Foundation
public import FoundationNetworking
public import NetOpt

extension URLSessionConfiguration {
  /// Sends the `http` and `https` tasks of sessions with this configuration over a client. The program is
  /// otherwise unchanged: data, upload and download tasks, completion handlers, delegates and `async`
  /// functions work as with Foundation's own HTTP implementation.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.default
  /// configuration.useNetOpt(try NetOptClient())
  /// let session = URLSession(configuration: configuration)
  /// ```
  ///
  /// For `URLSession.shared`, call it on `URLSession.shared.configuration` before the first task.
  ///
  /// Cookies, redirects and `timeoutInterval` are Foundation's, but no redirect of another server leads to a host
  /// for which the client has credentials. A client with `cookieHosts` also adds its own cookies to requests
  /// that have none. The configuration and its sessions keep the client alive. They do not shut it down: after
  /// `shutdown()` of the client, tasks fail. Call it before other threads use the configuration.
  ///
  /// - Parameters:
  ///   - client: the client. Several configurations may share it.
  ///   - options: the preferences of all requests, such as `version` or `hedges`. The configuration and the
  ///     tasks decide about `timeout` (`timeoutIntervalForResource`) and `maxRedirects`. Default: the default
  ///     options.
  /// - Precondition: the installed Foundation is one that the adapter knows (docs/NetOpt.docc/Foundation.md).
  public func useNetOpt(_ client: NetOptClient, options: RequestOptions = RequestOptions()) {
    precondition(
      TaskInternals.areKnown,
      "NetOptFoundation does not know this version of Foundation: its tasks lack a property that the adapter needs"
    )
    // A protocol instance finds its client in the configuration of its session. Foundation does not use this
    // dictionary on Linux, and copies it with the configuration, so the client lives as long as its sessions.
    var dictionary = connectionProxyDictionary ?? [:]
    dictionary[ClientReference.key] = ClientReference(client: client, options: options)
    connectionProxyDictionary = dictionary
    var classes: [AnyClass] = protocolClasses ?? []
    classes.removeAll { $0 == NetOptURLProtocol.self }
    protocolClasses = [NetOptURLProtocol.self] + classes
  }

  /// The client that `useNetOpt` was called with; `nil` if the dictionary was replaced since.
  var netOptClient: ClientReference? {
    connectionProxyDictionary?[ClientReference.key] as? ClientReference
  }
}

/// The client of a configuration, and the options of its requests.
final class ClientReference: Sendable {
  static let key = "NetOptFoundation.client"

  let client: NetOptClient
  let options: RequestOptions

  init(client: NetOptClient, options: RequestOptions) {
    self.client = client
    self.options = options
  }
}
