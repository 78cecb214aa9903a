internal import Glibc
package import Spool
internal import SystemPackage
package import Transfer

extension JobRequest {
  /// How `defaults` have servers reached.
  /// - Parameter warn: gets what a person should know of it.
  /// - Throws: ``Defect``.
  package func networkOptions(of spool: Spool, warn: (String) -> Void) throws(Defect) -> NetworkOptions {
    if network == NetworkKeys() { return NetworkOptions() }
    guard let directory = realpath(spool.location, nil) else {
      throw Defect(line: nil, reason: "the spool: \(Errno(rawValue: Glibc.errno))")
    }
    defer { free(directory) }
    let setup = try NetworkSetup(
      network, directory: String(cString: directory), home: getenv("HOME").map { String(cString: $0) })
    setup.warnings.forEach(warn)
    return setup.options
  }
}
