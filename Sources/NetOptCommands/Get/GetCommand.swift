import NetOpt
import NetOptCore

/// `netopt get`: sends one request.
struct GetCommand: Command {
  private static let output = Option(
    "output", short: "o", takes: .required("FILE"),
    "write the body to FILE; replace FILE when the body is complete; -: standard output")
  private static let verbose = Option(
    "verbose", short: "v", "print the route and a waterfall chart of the times to standard error")
  private static let head = Option(
    "head", short: "I", "send HEAD and print the status line and the header fields")

  let declaration = CommandDeclaration(
    name: "get",
    summary: "request a URL and print the body",
    details: """
      Sends one request and writes the body to standard output as the body arrives. The request goes to the \
      fastest working address of the IP list. If none works, netopt uses the addresses from DNS. get follows \
      redirects. get retries a repeatable request when its connection fails or the response is 421, 502, 503 \
      or 504, at another address if there is one. POST and PATCH are not repeatable unless they have an \
      Idempotency-Key.

      The exit code says whether there was a response. It does not depend on the status of the response.
      """,
    operands: "URL", operandCount: 1...1,
    options: [
      OptionGroup("Request", RequestArguments.options + [head]),
      OptionGroup("Output", [output, verbose, .json]),
      OptionGroup("Signing", RequestSigning.options), CacheArguments.group, ClientOptions.routing,
      ClientOptions.connection, TLSOptions.group,
    ],
    examples: [
      .init("netopt get https://one.one.one.one/", "prints the page"),
      .init("netopt get -v -o page.html https://one.one.one.one/", "shows the route of the request"),
      .init(
        "netopt get -d @order.json -H 'Content-Type: application/json' https://api.example.com/orders",
        "posts a file without its line ends, as curl does"),
      .init(
        "netopt get --iplist iplist.json --json https://api.example.com/ | jq .route",
        "prints how netopt chose the address, and discards the body"),
      .init(
        "netopt get --cache ~/.cache/netopt https://api.example.com/", "caches the response for later runs"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let isJSON = arguments.has(.json)
    let destination = Self.destination(arguments)
    if destination == .output, isJSON {
      throw UsageError("--json and -o - both write to standard output; remove one of them")
    }
    do {
      let exchange = try await exchange(arguments, to: destination, in: context)
      if arguments.has(Self.verbose) { context.tell(Waterfall(exchange).text(columns: context.columns)) }
      if isJSON { try context.print(exchange.json) }
      return .ok
    } catch let error as NetOptError {
      let url = HTTPURL.shown(given: arguments.operands[0])
      if arguments.has(Self.verbose), let route = error.route {
        let waterfall = Waterfall(failed: url, route, otherAttempts: error.otherAttempts)
        context.tell(waterfall.text(columns: context.columns))
      }
      if isJSON { try context.print(FinishedExchange.failure(url: url, error)) }
      throw error
    }
  }

  /// Sends the request and writes the response to its destination.
  ///
  /// - Throws: the errors of the request, the body and the destination. If the body fails, the error contains
  ///   the route of the response, so that the report can show the route.
  private func exchange(
    _ arguments: Arguments, to destination: BodySink.Destination, in context: CommandContext
  ) async throws -> FinishedExchange {
    let isHead = arguments.has(Self.head)
    let request = try RequestArguments.request(arguments, isHead: isHead, in: context)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    configuration.signing = try RequestSigning.configuration(arguments, request)
    configuration.cache = try CacheArguments(arguments).configuration
    let signing = configuration.signing
    // Open the destination before the request is sent: if it cannot be written, the command must not send the
    // request.
    let sink = try BodySink(destination, output: context.output)
    return try await context.withClient(configuration) { client in
      let response = try await client.execute(request)
      do {
        let count = try await sink.take(response, headOnly: isHead)
        var exchange = FinishedExchange(request.method, response, bodyBytes: count)
        let isSigned = signing?.hosts.contains(response.url.origin.host) == true
        exchange.signedBy = isSigned ? signing?.signer.key.id : nil
        return exchange
      } catch let error as NetOptError where error.route == nil {
        throw error.with(route: response.route)
      }
    }
  }

  /// Returns where the body goes: to the file of `-o`, to standard output, or, with `--json` and without
  /// `-o`, nowhere. `--json` needs standard output for its object.
  private static func destination(_ arguments: Arguments) -> BodySink.Destination {
    switch arguments.value(of: output) {
    case nil: arguments.has(.json) ? .nowhere : .output
    case "-": .output
    case let file?: .file(file)
    }
  }
}
