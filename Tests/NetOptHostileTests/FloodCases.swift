import NetOptCore

/// HTTP/1.1 responses that are endless, very large or very slow. The client limits the size of heads, 1xx
/// responses and trailers. It must report an error when a response exceeds a limit.
enum FloodCases {
  static let all: [HostileCase] = [HostileCase].together(endless, large, slow).map { hostile in
    var hostile = hostile
    hostile.isFlood = true
    return hostile
  }

  /// Responses that never end. The test itself stops reading an endless body (`bodyTooLarge`).
  private static let endless: [HostileCase] = .together(
    .fails(
      as: .oversized,
      [
        "flood-of-fields", "flood-of-short-fields", "flood-of-one-name", "flood-of-one-value",
        "flood-of-folds", "flood-of-spaces-in-a-value", "flood-in-the-status-line",
        "flood-before-the-status-line", "flood-of-zeros", "flood-of-continue", "flood-of-hints",
        "flood-in-one-1xx", "flood-of-trailers", "flood-in-one-trailer", "flood-in-a-chunk-size",
      ]),
    .fails(as: .broken, ["flood-in-a-chunk-extension"]),
    .fails(as: [.bodyTooLarge], ["body-without-end", "chunks-of-a-byte-without-end"]))

  /// Responses with a finite but very large head or trailers. A client may accept them or reject them as
  /// oversized.
  private static let large: [HostileCase] = .either(
    or: .oversized,
    [
      "field-of-a-megabyte", "field-of-200-kilobytes", "a-hundred-thousand-fields",
      "a-hundred-thousand-trailers",
    ])

  /// Endless responses that come so slowly that the deadline ends them.
  private static let slow: [HostileCase] = .fails(
    as: .brokenOrSlow, ["continue-every-10-ms", "a-byte-of-the-head-every-10-ms"]
  ) { $0.timeout = .milliseconds(300) }
}
