// swift-tools-version: 6.2
import PackageDescription

/// Fuzzing with libFuzzer: `make fuzz`. A package of its own, because a fuzzer brings its own `main`.
let package = Package(
  name: "netopt-fuzz",
  dependencies: [.package(name: "netopt", path: "..")],
  targets: [
    .executableTarget(
      name: "fuzz-signing", dependencies: [.product(name: "NetOptSigning", package: "netopt")],
      swiftSettings: [
        .swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library", "-sanitize=fuzzer", "-O"]),
      ],
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer"])])
  ]
)
