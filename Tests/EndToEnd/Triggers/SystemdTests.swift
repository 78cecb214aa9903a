import Glibc
import TestSupport
import Testing

/// The units of `contrib/systemd`. `make deb-test` starts them in a Debian of their own.
@Suite struct SystemdTests {
  private static let units = [
    "spoolrun-once.path", "spoolrun-once.service", "spoolrun-once.timer", "spoolrun.service", "spoolrun@.service",
    "user/spoolrun.service",
  ]
  /// They run as another user, and without a network.
  private static let metrics = ["service", "timer"].map { "../prometheus/spoolrun-metrics.\($0)" }
  private static let services = units.filter { $0.hasSuffix(".service") }

  private static func text(_ unit: String) throws -> String {
    try readText(SourceTree.contrib("systemd/\(unit)"))
  }

  private static func values(of key: String, in unit: String) throws -> [String] {
    try text(unit).split(separator: "\n").filter { $0.hasPrefix("\(key)=") }.map { String($0.dropFirst(key.count + 1)) }
  }

  @Test(.enabled("needs systemd-analyze") { try await Need.program("systemd-analyze").isMet() })
  func `systemd finds nothing wrong with the units, and little exposed`() async throws {
    let scene = try Scene.echoing()
    let named = names(in: SourceTree.contrib("systemd")).filter { $0.hasPrefix("spoolrun") }
    #expect(Set(named) == Set(Self.units.filter { !$0.hasPrefix("user/") }))
    for user in [false, true] {
      let units = Self.units.filter { $0.hasPrefix("user/") == user } + (user ? [] : Self.metrics)
      let folder = "\(scene.tools)/\(user ? "user" : "system")"
      try #require(mkdir(folder, 0o700) == 0)
      // The program is where the tests have built it, and the manual pages are not installed.
      let paths = units.map { "\(folder)/\($0.split(separator: "/").last ?? "")" }
      for (unit, path) in zip(units, paths) {
        try writeFile(path, try Self.text(unit).replacing("/usr/local/bin/", with: "\(scene.tools)/"))
      }
      let scope = user ? "--user" : "--system"
      let verified = try await run(
        ["/usr/bin/env", "systemd-analyze", scope, "verify", "--man=no"] + paths,
        environment: testEnvironment.merging(["HOME": scene.tools, "XDG_RUNTIME_DIR": scene.tools]) { $1 })
      #expect(verified.status == .exited(0) && verified.errors == "", "\(verified)")
      // A user's manager cannot do most of what makes the system's services safe.
      for path in paths where !user && path.hasSuffix(".service") {
        // The levels go from 0 to 10; below 2 systemd calls it OK.
        let rated = try await run([
          "/usr/bin/env", "systemd-analyze", "security", "--offline=yes", "--threshold=20", path,
        ])
        #expect(rated.status == .exited(0), "\(rated)")
      }
    }
  }

  /// systemd has no way to share them.
  @Test func `all services of the system are confined alike`() throws {
    func confinement(_ unit: String) throws -> [Substring] {
      let lines = try Self.text(unit).split(separator: "\n")
      let begin = try #require(lines.firstIndex { $0.hasPrefix("StateDirectory=") }, "\(unit)")
      return lines[begin...].prefix { !$0.hasPrefix("[") }.filter { !$0.hasPrefix("ReadWritePaths=") }
    }
    let model = try confinement("spoolrun.service")
    #expect(model.count > 20)
    for unit in Self.services where !unit.hasPrefix("user/") { #expect(try confinement(unit) == model, "\(unit)") }
  }

  /// 75 is no failure of the service, but a worker that was not stopped ends with it only if its mount is away.
  @Test(arguments: services)
  func `a worker that keeps running is started again whatever ended it`(unit: String) throws {
    let keepsRunning = try !Self.values(of: "Restart", in: unit).isEmpty
    #expect(try Self.values(of: "RestartForceExitStatus", in: unit) == (keepsRunning ? ["75"] : []))
  }

  /// The path unit starts it again at once while anything is there, whatever became of the last run.
  @Test(arguments: ["success", "exit-code"])
  func `a run pauses if something is left that it could not take`(result: String) async throws {
    let scene = try Scene.echoing()
    let commands = try ["ExecStartPost", "ExecStopPost"].map { key throws in
      let line = try #require(try Self.values(of: key, in: "spoolrun-once.service").first)
      let script = try #require(line.split(separator: "'").dropFirst().first)
      return script.replacing("$$", with: "$").replacing("/var/spool/spoolrun", with: scene.spool.root)
    }
    func pause() async throws -> String {
      // After a run that failed there is no ExecStartPost= (systemd.service(5)).
      let script = commands.dropFirst(result == "success" ? 0 : 1).joined(separator: "\n")
      return try await run(["/bin/sh", "-c", "SERVICE_RESULT=\(result)\nsleep() { echo \"$1\"; }\n\(script)"]).output
    }
    try scene.spool.write("new/.hidden", [])
    #expect(try await pause() == "1\n")
    try #require(mkdir(scene.spool.path("new/folder"), 0o700) == 0)
    #expect(try await pause() == "20\n")
  }

  /// Options of the command line that a unit has, and an administrator's in place of `$SPOOLRUN_OPTIONS`, run a job.
  @Test(arguments: services)
  func `what a unit executes is accepted by the program`(unit: String) async throws {
    let scene = try Scene.echoing()
    try scene.spool.drop("a", scene.server.url("/a") + "\n")
    let commands = try (Self.values(of: "ExecStartPre", in: unit) + Self.values(of: "ExecStart", in: unit))
      .filter { $0.hasPrefix("/usr/local/bin/spoolrun ") }
    #expect(commands.count == 2)
    let spool = try #require(commands.last?.split(separator: " ").last)
    for command in commands {
      #expect(command.hasSuffix(" \(spool)"), "\(unit): \(command)")
      let once = command.contains(" init ") || command.contains("--once") ? [] : ["--once"]
      let words = command.replacing(" $SPOOLRUN_OPTIONS", with: " --jobs 2").replacing(spool, with: scene.spool.root)
        .split(separator: " ").dropFirst().map(String.init)
      let result = try await run([productPath("spoolrun")] + words + once)
      #expect(result.status == .exited(0) && result.errors == "", "\(unit): \(command): \(result)")
    }
    #expect(scene.isDone("a"))
  }
}
