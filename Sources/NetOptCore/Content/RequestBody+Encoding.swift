public import FoundationEssentials

/// Bodies encoded from values, with the matching media type.
extension RequestBody {
  /// A body from a value, encoded as JSON (RFC 8259), with the media type `application/json`.
  ///
  /// ```swift
  /// let request = try NetOptRequest(.post, "https://api.example.com/orders", body: .json(order))
  /// ```
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - encoder: the encoder; `nil` for one that sorts the keys of objects, so that the same dictionary has
  ///     the same bytes each time. The cache compares the bytes. A `Set` has no stable order: sort it first.
  /// - Throws: `NetOptError.Code.invalidRequest` if the value cannot be encoded.
  public static func json(
    _ value: some Encodable, encoder: JSONEncoder? = nil
  ) throws(NetOptError) -> RequestBody {
    do {
      let data = try (encoder ?? sortingEncoder).encode(value)
      return RequestBody(source: .bytes(Array(data)), contentType: "application/json")
    } catch let error as EncodingError {
      throw NetOptError(
        .invalidRequest, phase: .send, "the body cannot be encoded as JSON: \(error.reason)")
    } catch {
      throw NetOptError(
        .invalidRequest, phase: .send, "the body cannot be encoded as JSON: \(type(of: error))")
    }
  }

  private static var sortingEncoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// A body with the fields of a form, in their order, with the media type
  /// `application/x-www-form-urlencoded` (URL Standard, section 5.2).
  ///
  /// ```swift
  /// let body = RequestBody.form(["grant_type": "refresh_token", "refresh_token": token])
  /// ```
  public static func form(_ fields: KeyValuePairs<String, String>) -> RequestBody {
    form(fields.map { ($0.key, $0.value) })
  }

  /// A body with the fields of a form, in their order.
  public static func form(_ fields: [(name: String, value: String)]) -> RequestBody {
    var bytes: [UInt8] = []
    for (name, value) in fields {
      if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
      PercentEncoding.append(name.utf8, to: &bytes, [.form, .plusForSpace])
      bytes.append(UInt8(ascii: "="))
      PercentEncoding.append(value.utf8, to: &bytes, [.form, .plusForSpace])
    }
    return RequestBody(source: .bytes(bytes), contentType: "application/x-www-form-urlencoded")
  }
}
