extension NetOptRequest {
  /// A request method (RFC 9110, section 9). Methods are case-sensitive.
  public struct Method: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral,
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
    public static let get: Method = "GET"
    /// Like GET, without the body.
    public static let head: Method = "HEAD"
    /// Hands over data to be processed.
    public static let post: Method = "POST"
    /// Replaces a resource.
    public static let put: Method = "PUT"
    /// Removes a resource.
    public static let delete: Method = "DELETE"
    /// Changes a resource (RFC 5789).
    public static let patch: Method = "PATCH"
    /// Asks what can be done.
    public static let options: Method = "OPTIONS"
    /// Asks for the request back.
    public static let trace: Method = "TRACE"

    /// Whether the method changes nothing on the server (RFC 9110, section 9.2.1).
    public var isSafe: Bool { self == .get || self == .head || self == .options || self == .trace }

    /// Whether sending it twice has the effect of sending it once (RFC 9110, section 9.2.2).
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }
  }
}
