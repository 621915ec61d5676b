/// A request method (RFC 9110, section 9). Methods are case-sensitive.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The method as it is sent.
  public let rawValue: String

  /// Makes a method; whether it is a token is checked when the request is sent.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Makes a method from a literal.
  public init(stringLiteral value: String) { rawValue = value }

  /// The method as it is sent.
  public var description: String { rawValue }

  /// Asks for a representation.
  public static let get: HTTPMethod = "GET"
  /// Like GET, without the body.
  public static let head: HTTPMethod = "HEAD"
  /// Hands over data to be processed.
  public static let post: HTTPMethod = "POST"
  /// Replaces a resource.
  public static let put: HTTPMethod = "PUT"
  /// Removes a resource.
  public static let delete: HTTPMethod = "DELETE"
  /// Changes a resource (RFC 5789).
  public static let patch: HTTPMethod = "PATCH"
  /// Asks what can be done.
  public static let options: HTTPMethod = "OPTIONS"
  /// Asks for the request back.
  public static let trace: HTTPMethod = "TRACE"

  /// Whether the method changes nothing on the server (RFC 9110, section 9.2.1).
  public var isSafe: Bool { self == .get || self == .head || self == .options || self == .trace }

  /// Whether sending it twice has the effect of sending it once (RFC 9110, section 9.2.2).
  public var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}

/// The version of HTTP that an exchange used.
public enum HTTPVersion: String, Hashable, Sendable, CustomStringConvertible {
  /// HTTP/1.0 (RFC 1945).
  case http1_0 = "1.0"
  /// HTTP/1.1 (RFC 9112).
  case http1_1 = "1.1"
  /// HTTP/2 (RFC 9113).
  case http2 = "2"
  /// HTTP/3 (RFC 9114), for a libcurl that speaks it.
  case http3 = "3"

  /// `1.1`, `2`.
  public var description: String { rawValue }
}
