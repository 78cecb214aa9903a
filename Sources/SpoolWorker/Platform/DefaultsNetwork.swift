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
    let directory: String
    do throws(Errno) { directory = try realPath(spool.location) } catch {
      throw Defect(line: nil, reason: "the spool: \(error)")
    }
    let setup = try NetworkSetup(network, directory: directory, home: getenv("HOME").map { String(cString: $0) })
    setup.warnings.forEach(warn)
    return setup.options
  }
}
