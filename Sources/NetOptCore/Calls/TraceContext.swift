/// The place of a call or an attempt in a distributed trace (W3C Trace Context,
/// https://www.w3.org/TR/trace-context/).
package struct TraceContext: Hashable, Sendable {
  /// The identifier of a trace: 16 bytes, not all 0.
  package struct ID: Hashable, Sendable {
    /// The first and the last 8 bytes.
    package let high, low: UInt64

    /// Creates an identifier.
    package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
  }

  /// The trace.
  package let traceID: ID
  /// The span that sends the request. Not 0.
  package let spanID: UInt64
  /// The flags of the trace, as far as they are known: whether it is recorded, and whether its identifier is
  /// random.
  package let flags: UInt8
  /// The values of `tracestate`, which belong to other systems on the path; `nil` without any.
  package let state: String?

  /// The flag of a trace that is recorded.
  package static var sampled: UInt8 { 1 }
  /// The flags that netopt passes on: `sampled`, and the `random` of level 2 of the recommendation.
  private static var knownFlags: UInt8 { 3 }

  /// Whether the trace is recorded.
  package var isSampled: Bool { flags & Self.sampled != 0 }

  /// Creates a context.
  package init(traceID: ID, spanID: UInt64, flags: UInt8, state: String? = nil) {
    (self.traceID, self.spanID, self.flags, self.state) = (traceID, spanID, flags, state)
  }

  /// The context of another span of the same trace.
  package func with(spanID: UInt64) -> TraceContext {
    TraceContext(traceID: traceID, spanID: spanID, flags: flags, state: state)
  }

  /// Reads the context that header fields contain. `nil` if there is none, or if it is invalid: then a new
  /// trace begins, and the `tracestate` is void.
  package init?(_ fields: HeaderFields) {
    var parent: String?
    var states: [String] = []
    for field in fields {
      if HeaderFields.equal(field.name, "traceparent") {
        // With two of them, nobody knows which one is true.
        guard parent == nil else { return nil }
        parent = field.value
      } else if HeaderFields.equal(field.name, "tracestate"), !field.value.isEmpty {
        states.append(field.value)
      }
    }
    guard let parent else { return nil }
    self.init(traceparent: parent, state: states.isEmpty ? nil : states.joined(separator: ","))
  }

  /// Reads a `traceparent`: `00-{trace: 32 digits}-{span: 16 digits}-{flags: 2 digits}`. The digits are
  /// hexadecimal, in lower case. A later version has another number than `00`, and may add more after another
  /// hyphen.
  private init?(traceparent: String, state: String?) {
    let text = Array(traceparent.utf8)
    guard text.count >= 55, text[2] == 0x2d, text[35] == 0x2d, text[52] == 0x2d,
      let version = Self.number(text[0..<2]), version != 0xff,
      let high = Self.number(text[3..<19]), let low = Self.number(text[19..<35]), high | low != 0,
      let span = Self.number(text[36..<52]), span != 0,
      let flags = Self.number(text[53..<55]),
      text.count == 55 || version != 0 && text[55] == 0x2d
    else { return nil }
    self.init(
      traceID: ID(high: high, low: low), spanID: span, flags: UInt8(flags) & Self.knownFlags, state: state)
  }

  /// The number in at most 16 hexadecimal digits in lower case; `nil` for other characters.
  private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
    var number: UInt64 = 0
    for digit in digits {
      switch digit {
      case 0x30...0x39: number = number << 4 | UInt64(digit - 0x30)
      case 0x61...0x66: number = number << 4 | UInt64(digit - 0x61 + 10)
      default: return nil
      }
    }
    return number
  }

  /// The value of the field `traceparent`.
  package var traceparent: String {
    // Written for every attempt, so without an array.
    String(unsafeUninitializedCapacity: 55) { text in
      var end = 0
      func append(_ byte: UInt8) {
        text[end] = byte
        end += 1
      }
      func append(hex number: UInt64, digits: Int) {
        for place in stride(from: 4 * (digits - 1), through: 0, by: -4) {
          let digit = UInt8(truncatingIfNeeded: number >> UInt64(place)) & 15
          append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
      }
      append(hex: 0, digits: 2)
      append(0x2d)
      append(hex: traceID.high, digits: 16)
      append(hex: traceID.low, digits: 16)
      append(0x2d)
      append(hex: spanID, digits: 16)
      append(0x2d)
      append(hex: UInt64(flags), digits: 2)
      return end
    }
  }
}

extension [UInt8] {
  /// Appends the 32 hexadecimal digits of the identifier of a trace.
  package mutating func append(_ id: TraceContext.ID) {
    append(hex: id.high, digits: 16)
    append(hex: id.low, digits: 16)
  }
}

extension TraceContext.ID: CustomStringConvertible {
  /// The 32 hexadecimal digits.
  package var description: String {
    var text: [UInt8] = []
    text.append(self)
    return String(decoding: text, as: UTF8.self)
  }
}
