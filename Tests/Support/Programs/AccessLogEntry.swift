import NetOptTestSupport
import FoundationEssentials
package import NetOptCore

/// One completed request in the log of an `NginxOrigin`.
package struct AccessLogEntry: Sendable, Hashable, Decodable {
  /// The IP address of the server at which the request arrived, as text.
  package let serverAddress: String
  /// The port of the server at which the request arrived.
  package let serverPort: UInt16
  /// The server name from the TLS handshake (SNI). Empty without SNI.
  package let serverName: String
  /// The `Host` field, or `:authority` over HTTP/2.
  package let host: String
  /// The HTTP version: `HTTP/1.1` or `HTTP/2.0`.
  package let version: String
  /// The method.
  package let method: String
  /// The path and query of the request, as nginx received them.
  package let target: String
  /// The status of the response. 499 when the client closed the connection before the response.
  package let status: Int
  /// The size of the request in bytes: line, fields and body.
  package let requestLength: Int
  /// The number that nginx gave the connection. Each connection to the server has its own.
  package let connection: Int
  /// The number of the request on its connection, from 1.
  package let requestOfConnection: Int
  /// Whether the connection resumed a TLS session.
  package let sessionReused: Bool
  /// The number of bytes of the response body that nginx sent.
  package let bodyBytes: Int
  /// The `User-Agent` field.
  package let userAgent: String

  /// `serverAddress` as a value.
  package var address: IPAddress? { IPAddress(serverAddress) }

  /// The format of a log line, in the syntax of ngx_http_log_module. Each line is a JSON object.
  static let format = """
    {"serverAddress":"$server_addr","serverPort":$server_port,"serverName":"$ssl_server_name",\
    "host":"$http_host","version":"$server_protocol","method":"$request_method","target":"$request_uri",\
    "status":$status,"requestLength":$request_length,"connection":$connection,\
    "requestOfConnection":$connection_requests,"session":"$ssl_session_reused","bodyBytes":$body_bytes_sent,\
    "userAgent":"$http_user_agent"}
    """

  private enum CodingKeys: String, CodingKey {
    case serverAddress, serverPort, serverName, host, version, method, target, status, requestLength,
      connection
    case requestOfConnection, session, bodyBytes, userAgent
  }

  /// Decodes an entry of the log.
  package init(from decoder: any Decoder) throws {
    let entry = try decoder.container(keyedBy: CodingKeys.self)
    serverAddress = try entry.decode(String.self, forKey: .serverAddress)
    serverPort = try entry.decode(UInt16.self, forKey: .serverPort)
    serverName = try entry.decode(String.self, forKey: .serverName)
    host = try entry.decode(String.self, forKey: .host)
    version = try entry.decode(String.self, forKey: .version)
    method = try entry.decode(String.self, forKey: .method)
    target = try entry.decode(String.self, forKey: .target)
    status = try entry.decode(Int.self, forKey: .status)
    requestLength = try entry.decode(Int.self, forKey: .requestLength)
    connection = try entry.decode(Int.self, forKey: .connection)
    requestOfConnection = try entry.decode(Int.self, forKey: .requestOfConnection)
    sessionReused = try entry.decode(String.self, forKey: .session) == "r"
    bodyBytes = try entry.decode(Int.self, forKey: .bodyBytes)
    userAgent = try entry.decode(String.self, forKey: .userAgent)
  }
}

extension NginxOrigin {
  /// The completed requests, in the order of their completion. nginx logs a request after it has sent the
  /// response, so the client may have the response before the entry exists. To wait for entries, use
  /// `waitForLog`.
  ///
  /// - Throws: an error that describes a malformed entry.
  package func accessLog() throws -> [AccessLogEntry] {
    let text = TextFile.read("\(directory)/access.log")
    // nginx may still be writing the last line.
    return try text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map {
      try JSONDecoder().decode(AccessLogEntry.self, from: Data($0.utf8))
    }
  }

  /// Waits until the log has at least `count` matching entries, and returns the matching entries.
  ///
  /// - Parameters:
  ///   - count: the smallest number of entries.
  ///   - limit: how long to wait. Default: 60 s.
  ///   - fits: whether an entry matches. Default: every entry matches.
  /// - Throws: `TestSupportError` when the entries do not arrive in time.
  package func waitForLog(
    _ count: Int, within limit: Duration = .seconds(60),
    where fits: @Sendable (AccessLogEntry) -> Bool = { _ in true }
  ) async throws -> [AccessLogEntry] {
    var entries: [AccessLogEntry] = []
    try await wait(for: "\(count) entries in the access log", within: limit) {
      entries = try accessLog().filter(fits)
      return entries.count >= count
    }
    return entries
  }
}
