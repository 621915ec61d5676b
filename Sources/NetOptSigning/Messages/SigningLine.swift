package import NetOptCore
import NetOptCrypto

/// One line of a JSON Lines file: a request, and how to sign or verify the request
/// (docs/schemas/signing-line.schema.json). The scheme, the key id, the time and the options are those of the
/// command line if the line has none.
package struct SigningLine: Sendable {
  /// The `id` of the line, which its author chose and which the output repeats; null if the line has none.
  package let id: JSONValue
  /// The request to sign or to verify.
  package let request: SigningRequest
  /// The scheme to sign or verify with; `nil` if the line names none.
  package let scheme: SchemeName?
  /// The id of the key: the signer signs with this key, and the verifier accepts only a signature by this
  /// key. `nil` if the line names none.
  package let keyID: String?
  /// The time at which the request is signed or verified, in seconds since 1970; `nil` if the line has none.
  package let now: Int64?
  /// The nonce that the signer uses instead of a random one, for test vectors; `nil` for a random nonce.
  package let nonce: String?
  /// The scheme's options as a JSON object; `nil` if the line has none.
  package let options: JSONPart?
  /// The string that the signer signed. The verifier compares it with the string that it builds from the
  /// request. `nil` if the line has none.
  package let stringToSign: String?

  /// A line that cannot be used.
  package struct Fault: Error, Sendable {
    /// The `id` of the line; null if the line has none or is not JSON.
    package let id: JSONValue
    /// The rule that the line breaks, and the place in the line.
    package let fault: SigningFault

    /// Makes a fault.
    package init(id: JSONValue, fault: SigningFault) {
      self.id = id
      self.fault = fault
    }
  }

  /// The names of the members that a line can have.
  private static let members: Set = [
    "id", "method", "url", "headers", "body", "body_base64", "scheme", "key_id", "now", "nonce", "options",
    "string_to_sign",
  ]

  /// Parses and reads a line.
  package init(_ text: [UInt8]) throws(Fault) {
    let root: JSONPart
    do throws(JSONFault) { root = try JSONDocument.read(SecretBytes(copying: text)) } catch {
      throw Fault(id: .null, fault: Self.malformed(error))
    }
    try self.init(root)
  }

  /// Reads a line that is already parsed.
  package init(_ root: JSONPart) throws(Fault) {
    let id = (try? root.member("id")).map { $0?.plain ?? .null } ?? .null
    do throws(SigningFault) {
      try self.init(root, id: id)
    } catch {
      throw Fault(id: id, fault: error)
    }
  }

  /// The fault of a line that is not JSON, or that has an unknown member or a member with an invalid value.
  private static func malformed(_ fault: JSONFault) -> SigningFault {
    SigningFault(.malformedRequest, "\(fault.location): \(fault.rule)")
  }

  /// Reads a line whose `id` was read already.
  private init(_ root: JSONPart, id: JSONValue) throws(SigningFault) {
    self.id = id
    do {
      for member in try root.members() where !Self.members.contains(member.name) {
        throw member.value.fault("a line cannot have this member")
      }
      scheme = try root.member("scheme").map { (part) throws(JSONFault) in
        guard let scheme = SchemeName(rawValue: try part.string()) else {
          throw part.fault("must be one of \(SchemeName.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return scheme
      }
      keyID = try root.member("key_id")?.string()
      now = try root.member("now")?.integer()
      nonce = try root.member("nonce")?.string()
      options = try root.member("options")
      stringToSign = try root.member("string_to_sign")?.string()
      let method = try root.required("method").string()
      let url = try root.required("url").string()
      let headers = try Self.headers(root)
      let body = try Self.body(root)
      request = try Self.request(method, url, headers, body).get()
    } catch let fault as JSONFault {
      throw Self.malformed(fault)
    } catch let fault as SigningFault {
      throw fault
    } catch {
      throw SigningFault(.malformedRequest, "\(error)")
    }
  }

  /// Makes the request of a line, or the fault that the request has.
  private static func request(
    _ method: String, _ url: String, _ headers: HeaderFields, _ body: [UInt8]
  ) -> Result<SigningRequest, SigningFault> {
    Result { () throws(SigningFault) in
      try SigningRequest(method, rawURL: url, headers: headers, body: body)
    }
  }

  /// Reads the member `headers`, an array of pairs of name and value. A line fold in a value becomes one
  /// space.
  private static func headers(_ root: JSONPart) throws(JSONFault) -> HeaderFields {
    var fields = HeaderFields()
    guard let pairs = try root.member("headers")?.elements() else { return fields }
    for pair in pairs {
      let parts = try pair.elements()
      guard parts.count == 2 else { throw pair.fault("must be a name and a value") }
      let field = HeaderField(try parts[0].string(), SigningRequest.unfolded(try parts[1].string()))
      if let fault = HeaderFields.fault(of: field) { throw pair.fault(fault) }
      fields.append(field)
    }
    return fields
  }

  /// Reads the body from the member `body` (a text) or `body_base64`. No body means an empty body.
  private static func body(_ root: JSONPart) throws(JSONFault) -> [UInt8] {
    let text = try root.member("body")
    guard let encoded = try root.member("body_base64") else {
      return try text?.bytes() ?? []
    }
    if let text { throw text.fault("must not be used with body_base64; give one of them") }
    guard let bytes = Base64.decode(try encoded.bytes()) else {
      throw encoded.fault("is not base64 with padding")
    }
    return bytes
  }
}

extension JSONPart {
  /// The value of a text, an integer or a Boolean, in a form that can be written to other JSON; null for
  /// every other value.
  package var plain: JSONValue {
    if let text = try? string() { return .string(text) }
    if let number = try? integer() { return .integer(number) }
    if let flag = try? bool() { return .bool(flag) }
    return .null
  }
}
