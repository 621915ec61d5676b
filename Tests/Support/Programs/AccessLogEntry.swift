import NetOptTestSupport
import FoundationEssentials
package import NetOptCore

/// One request as an `NginxOrigin` logged it, when it was over.
package struct AccessLogEntry: Sendable, Hashable, Decodable {
  /// The address that the request came to.
  package let serverAddress: String
  /// The port that it came to.
  package let serverPort: UInt16
  /// The name in SNI; empty without.
  package let serverName: String
  /// The `Host` field, or `:authority`.
  package let host: String
  /// `HTTP/1.1`, `HTTP/2.0`.
  package let version: String
  /// The method.
  package let method: String
  /// Path and query as they came.
  package let target: String
  /// The status that was answered; 499 when the client went away before.
  package let status: Int
  /// The bytes of the request: line, fields and body.
  package let requestLength: Int
  /// A number that tells connections apart.
  package let connection: Int
  /// The request's number on its connection, from 1.
  package let requestOfConnection: Int
  /// Whether TLS resumed a session.
  package let sessionReused: Bool
  /// The bytes of the body that were sent.
  package let bodyBytes: Int
  /// The `User-Agent` field.
  package let userAgent: String

  /// The address that the request came to.
  package var address: IPAddress? { IPAddress(serverAddress) }

  /// The log format in nginx's terms: ngx_http_log_module.
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

  /// Reads an entry of the log.
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
  /// The requests that are over, in the order in which they ended. A request is logged after its answer was sent: a
  /// client may have the answer before the entry is there. Use `waitForLog` for what must come.
  ///
  /// - Throws: what is wrong with an entry.
  package func accessLog() throws -> [AccessLogEntry] {
    let text = TextFile.read("\(directory)/access.log")
    // The last line may be on its way still.
    return try text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map {
      try JSONDecoder().decode(AccessLogEntry.self, from: Data($0.utf8))
    }
  }

  /// Waits until the log has `count` entries that fit, and returns those.
  ///
  /// - Parameters:
  ///   - count: how many at least.
  ///   - limit: how long to wait. Default: 60 s.
  ///   - fits: which entries count. Default: all.
  /// - Throws: `TestSupportError` when they do not come in time.
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
