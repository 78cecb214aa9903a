import Glibc
import TestSupport

/// A payload that is passed on before its job is done.
extension Scenario {
  static let delivered = [
    Scenario(
      name: "deliver", delivers: true,
      setUp: { world in
        try world.addDeliverHook()
        try world.drop()
      })
  ]
}

extension World {
  /// Keeps a copy of each payload that it is given, and says no to the first. A worker may die while the hook copies.
  func addDeliverHook() throws {
    guard mkdir(spool.path("hooks"), 0o700) == 0 else { throw TestSupportError("mkdir", "hooks", errno: errno) }
    let script = """
      #!/bin/sh
      cd "$SPOOLRUN_DIRECTORY" && cp "$SPOOLRUN_OUTPUT" '\(outside(""))'"copy.$$" || exit
      mv '\(outside(""))'"copy.$$" '\(outside(""))'"delivered-$SPOOLRUN_OUTPUT.$$" || exit
      mkdir '\(outside("refused"))' 2>/dev/null && exit 1
      touch '\(outside(""))'"accepted-$SPOOLRUN_OUTPUT"

      """
    try writeFile(spool.path("hooks/deliver"), Array(script.utf8))
    guard chmod(spool.path("hooks/deliver"), 0o700) == 0 else {
      throw TestSupportError("chmod", "hooks/deliver", errno: errno)
    }
  }

  /// Whether the hook has said yes to the payload.
  func isDelivered(_ output: String) -> Bool { fileStatus(outside("accepted-\(output)")) != nil }

  /// What the hook was given that is not the payload.
  func wrongDeliveries() throws -> [String] {
    try names(in: outside("")).filter { $0.hasPrefix("delivered-") }.filter {
      try readFile(outside($0)) != Version.current.bytes
    }
  }
}
