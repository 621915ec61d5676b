import NetOptCore

/// The fields and the query of a request, each parsed once for all components of a signature. A signature may
/// name 256 members of one field, and the verifier looks them up before it knows whether the signature is
/// right.
struct ParsedRequest {
  /// A parameter of the query.
  struct Parameter {
    /// The decoded value of the first parameter with the name.
    let value: [UInt8]
    /// The number of parameters with the name.
    var count = 1
  }

  let request: SigningRequest
  private var dictionaries: [String: Result<StructuredDictionary, StructuredFieldFault>] = [:]
  private var parameters: [[UInt8]: Parameter]?

  init(_ request: SigningRequest) { self.request = request }

  /// A member of a field that is a dictionary; `nil` if the dictionary does not have the key.
  ///
  /// - Parameter name: the name of the field in lower case.
  mutating func member(
    _ key: String, of name: String
  ) throws(StructuredFieldFault) -> StructuredMember? {
    if let known = dictionaries[name] { return try known.get()[key] }
    let text = request.headers[name] ?? ""
    let read = Result { () throws(StructuredFieldFault) in try StructuredFieldParser.dictionary(text.utf8) }
    dictionaries[name] = read
    return try read.get()[key]
  }

  /// The parameter with a name, which is encoded as in a form; `nil` if the query does not have it.
  mutating func parameter(_ name: String) -> Parameter? {
    let parameters = parameters ?? readParameters()
    self.parameters = parameters
    return parameters[Array(name.utf8)]
  }

  private func readParameters() -> [[UInt8]: Parameter] {
    var parameters: [[UInt8]: Parameter] = [:]
    for pair in QueryParameters(request.query, plus: true).pairs {
      var name: [UInt8] = []
      PercentEncoding.append(pair.key, to: &name, .form)
      parameters[name, default: Parameter(value: pair.value, count: 0)].count += 1
    }
    return parameters
  }
}
