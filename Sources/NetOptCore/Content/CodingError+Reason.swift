/// The reasons of encoding and decoding errors, for messages. They name the place in the JSON by its keys,
/// and no value, because a value may be a secret.
extension DecodingError {
  /// The reason, such as "$.user.id is missing".
  package var reason: String {
    switch self {
    case .keyNotFound(let key, let context): "\((context.codingPath + [key]).jsonPath) is missing"
    case .typeMismatch(let type, let context):
      "\(context.codingPath.jsonPath) is not \(Self.jsonName(of: type))"
    case .valueNotFound(_, let context): "\(context.codingPath.jsonPath) is null or missing"
    case .dataCorrupted(let context) where !context.codingPath.isEmpty:
      "\(context.codingPath.jsonPath) has a wrong value"
    // Foundation reports invalid JSON and a wrong value at the top with the same error.
    default: "it is not JSON, or $ has a wrong value"
    }
  }

  /// What a value of a type is in JSON.
  private static func jsonName(of type: Any.Type) -> String {
    switch type {
    case is Bool.Type: "true or false"
    case is String.Type: "a string"
    case is any Numeric.Type: "a number"
    // Foundation names these types when it expects an object or an array.
    case is [String: Any].Type: "an object"
    case is [Any].Type: "an array"
    default: "of the type \(type)"
    }
  }
}

extension EncodingError {
  /// The reason, such as "$.price cannot be encoded".
  package var reason: String {
    switch self {
    case .invalidValue(_, let context): "\(context.codingPath.jsonPath) cannot be encoded"
    @unknown default: "it cannot be encoded"
    }
  }
}

extension [any CodingKey] {
  /// The place that the keys lead to, in the style of JSONPath, such as `$.users[3].name`.
  package var jsonPath: String {
    reduce("$") { path, key in
      key.intValue.map { "\(path)[\($0)]" } ?? "\(path).\(key.stringValue.printable(100))"
    }
  }
}
