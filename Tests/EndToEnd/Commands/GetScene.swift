import Glibc
import TestSupport
import Testing

/// Tests of `spoolrun get`, with a home and a spool of their own.
protocol GetScene {
  /// Made by ``makeHome()``.
  var home: TemporaryDirectory { get }
  /// Of the commands: beside the files, unless they name another.
  var spool: String { get }
}

extension GetScene {
  static func makeHome() throws -> TemporaryDirectory {
    let home = try TemporaryDirectory()
    try #require(mkdir("\(home.path)/here", 0o755) == 0)
    return home
  }

  /// The person's current directory.
  var here: String { "\(home.path)/here" }
  var state: String { "\(home.path)/.local/state" }
  /// The person's own, as of version 0.2.
  var personal: String { "\(state)/spoolrun" }
  var spool: String { "\(here)/.spoolrun" }
  var environment: [String: String] { ["HOME": home.path, "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""] }

  func start(_ arguments: [String]) throws -> RunningCommand {
    try startSpoolrun(["get"] + arguments, environment: environment, directory: here)
  }

  func get(_ arguments: String...) async throws -> CommandResult { try await start(arguments).result() }

  func bytes(_ name: String) throws -> [UInt8] { try readFile("\(here)/\(name)") }

  /// Puts a hook, which is a shell script, where the person's own are.
  func install(_ hook: String, _ script: String) async throws {
    let hooks = "\(home.path)/.config/spoolrun/hooks"
    try await runTool(["/bin/mkdir", "-p", hooks])
    try writeFile("\(hooks)/\(hook)", "#!/bin/sh\n\(script)\n")
    try #require(chmod("\(hooks)/\(hook)", 0o700) == 0)
  }

  /// The length of the data of the only job that has begun.
  var length: Int? {
    names(in: "\(spool)/partial").first { $0.hasSuffix(".part") }
      .flatMap { fileStatus("\(spool)/partial/\($0)") }.map { Int($0.st_size) }
  }
}
