import NetOpt

/// Performs requests, so many at once as there are streams, and says what they cost: CPU and time from the first request to
/// the last. One observer that reads every event is attached.
enum RequestsBenchmark {
  static let options = [
    "--url", "--cacert", "--connect-to", "--list", "--probes", "-n", "-c", "--executor", "--cold", "--expect",
    "--observe", "--tags",
  ]

  static func run(_ options: Options) async throws -> String {
    var request = try NetOptRequest(.get, try options.required("--url"))
    // With the client's empty User-Agent this makes it the request of the floor, byte for byte.
    request.options.decompress = false
    let count = try options.count("-n", 10_000)
    var configuration = try ClientConfiguration.measured(options)
    try configuration.observe(try Observation(options))
    let streams = try options.count("-c", 100)
    let expectation = try Expectation(options.text("--expect"))
    var questions = try Question.all(request, expecting: expectation)
    if options.text("--tags") != nil {
      let tags = try options.count("--tags", 1)
      questions = (0..<max(tags, questions.count)).map {
        questions[$0 % questions.count].tagged("api-\($0 % tags)")
      }
    }
    if try options.choice("--cold", false) {
      return try await runCold(questions, count, configuration, expectation)
    }

    let client = try NetOptClient(configuration)
    try await Load.expectAnswer(questions[0], client, expectation)
    let usesLoop = try options.choice("--executor", true, yes: "loop", no: "pool")
    let load = Load(
      client: client, questions: questions, count: count, streams: streams, usesLoop: usesLoop,
      expectation: expectation)
    let before = Cost.now
    let outcome = await load.perform()
    let after = Cost.now
    await client.shutdown()
    return outcome.line(from: before, to: after)
  }

  /// Each request on a new client, from its making to the body's end.
  private static func runCold(
    _ questions: [Question], _ count: Int, _ configuration: ClientConfiguration, _ expectation: Expectation
  ) async throws -> String {
    var outcome = Load.Outcome()
    let clock = SystemTimeSource()
    var check = AnswerCheck(expectation)
    let before = Cost.now
    for index in 0..<count {
      let start = clock.now()
      let client = try NetOptClient(configuration)
      outcome.count(await Load.answer(questions[index % questions.count], client, &check))
      outcome.latencies.append((clock.now() - start).microseconds)
      await client.shutdown()
    }
    return outcome.line(from: before, to: Cost.now)
  }
}
