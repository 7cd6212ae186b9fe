#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants violations in a small tree and checks that rules.py names each of them, and nothing else."""
import subprocess
import tempfile
import unittest
from pathlib import Path

import rules

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class Rules(unittest.TestCase):
    def found(self, files):
        """What check() says about a tree of these files: [(path, line)], warnings' paths."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            violations, warnings = rules.check(folder)
        return [(name, line) for name, line, _ in violations], [name for name, _, _ in warnings]

    def expect_caught(self, name, body, line=2):
        self.assertEqual(self.found({name: SPDX + body})[0], [(name, line)], f"{name}: {body}")

    def expect_clean(self, name, body):
        self.assertEqual(self.found({name: SPDX + body})[0], [], f"{name}: {body}")

    def test_public_headers_include_only_standard_and_own_headers(self):
        self.expect_clean("include/ingot/a.h", "#include <vector>\n#include \"ingot/status.h\"\n")
        for target in ("<fmt/format.h>", "<simdjson.h>", "<nlohmann/json.hpp>", "<cuda.h>", "\"base/file.h\"", "<unistd.h>"):
            self.expect_caught("include/ingot/a.h", f"#include {target}\n")
        self.expect_caught("tests/consumer/project/main.cpp", "#include \"trace/reader.h\"\n")

    def test_bindings_include_the_stable_abi_and_public_headers(self):
        for target in ("<vector>", "<dlfcn.h>", "<torch/csrc/stable/library.h>", "<torch/headeronly/core/ScalarType.h>",
                       "\"ingot/engine.h\"", "\"request.h\""):
            self.expect_clean("bindings/python/op/a.cpp", f"#include {target}\n")
        for target in ("<torch/extension.h>", "<torch/torch.h>", "<ATen/ATen.h>", "<fmt/format.h>", "\"engine/inside.h\"",
                       "<pybind11/pybind11.h>"):
            self.expect_caught("bindings/python/op/a.cpp", f"#include {target}\n")
        self.expect_caught("bindings/python/op/a.cpp", "void f() { printf(\"x\"); }\n")

    def test_rooms_include_along_the_flow(self):
        for room, allowed in rules.ROOMS.items():
            path = f"{'arch/sm90' if room == 'arch' else 'src/' + room}/a.cpp"
            for other in rules.ROOMS:
                body = f"#include \"{other}/b.h\"\n"
                if other == room or other in allowed:
                    self.expect_clean(path, body)
                else:
                    self.expect_caught(path, body)
        self.expect_caught("src/base/a.cpp", "#include <vector>\n  # include <trace/b.h>\n", line=3)
        self.expect_caught("src/base/a.cpp", "#include \"../base/b.h\"\n")
        self.expect_caught("src/plan/a.cpp", "#include \"ingot/explain.h\"\n")
        self.expect_clean("src/report/a.cpp", "#include \"ingot/explain.h\"\n")
        self.expect_caught("src/attic/a.cpp", "", line=1)

    def test_flow_has_no_cycle(self):
        for room, allowed in rules.ROOMS.items():
            for other in allowed:
                self.assertNotIn(room, rules.ROOMS[other], f"{room} and {other} include each other")

    def test_libraries_stay_in_their_room(self):
        for target in ("cuda.h", "cuda_runtime.h", "nvrtc.h", "cupti.h", "cuda/std/array"):
            self.expect_caught("src/jit/a.cpp", f"#include <{target}>\n")
            self.expect_clean("src/gpu/a.cpp", f"#include <{target}>\n")
        self.expect_caught("src/report/a.cpp", "#include <CLI/CLI.hpp>\n")
        self.expect_clean("src/cli/a.cpp", "#include <CLI/CLI.hpp>\n")

    def test_environment_is_read_in_one_file(self):
        call = "const char* home = std::getenv(\"HOME\");\n"
        self.expect_caught("src/cli/a.cpp", call)
        self.expect_caught("src/base/a.cpp", call)
        self.expect_clean("src/base/env.cpp", call)

    def test_library_neither_prints_nor_exits(self):
        for call in ("printf(\"x\");", "std::printf(\"x\");", "::puts(\"x\");", "fprintf(stderr, \"x\");",
                     "std::fputs(text, stdout);", "fwrite(a, 1, n, stdout);", "std::cout << 1;", "std::cerr << 1;",
                     "fmt::print(\"x\");", "fmt::print(stderr, \"x\");", "exit(1);", "std::exit(1);", "abort();",
                     "std::terminate();"):
            self.expect_caught("src/trace/a.cpp", call + "\n")
            self.expect_clean("src/cli/a.cpp", call + "\n")

    def test_what_only_looks_like_a_call_is_left_alone(self):
        for code in ("std::snprintf(buffer, 8, \"x\");", "// exit(1) and printf(\"x\")", "/* abort();\n std::cout */",
                     "auto text = \"call abort() or printf(1)\";", "auto text = R\"(exit(1); \" std::cout)\";",
                     "scope.exit(1);", "scope->exit(1);", "int on_exit_code(int);", "fprintf(file, \"x\");",
                     "const int n = 1'000'000; // it's fine, don't exit(1)", "char quote = '\"'; int sprintf_like(int);"):
            self.expect_clean("src/trace/a.cpp", code + "\n")

    def test_code_after_a_literal_is_still_seen(self):
        self.expect_caught("src/trace/a.cpp", "char quote = '\"'; exit(1);\n")
        self.expect_caught("src/trace/a.cpp", "auto s = \"a\\\"b\"; /* c */ exit(1); // d\n")

    def test_licence_line(self):
        self.assertEqual(self.found({"src/base/a.cpp": "int a;\n"})[0], [("src/base/a.cpp", 1)])
        for name in ("scripts/a.sh", "scripts/a.py", "src/CMakeLists.txt", "Makefile", "kernels/a.cuh"):
            self.assertEqual(self.found({name: "x\n"})[0], [(name, 1)])
        self.assertEqual(self.found({"scripts/a.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"})[0], [])

    def test_length_warns_then_fails(self):
        def lines(count):
            return SPDX + "\n" * (count - 1)

        self.assertEqual(self.found({"src/base/a.cpp": lines(400)}), ([], []))
        self.assertEqual(self.found({"src/base/a.cpp": lines(401)}), ([], ["src/base/a.cpp"]))
        self.assertEqual(self.found({"src/base/a.cpp": lines(601)}), ([("src/base/a.cpp", 1)], []))
        self.assertEqual(self.found({"kernels/a.cuh": lines(600)}), ([], []))

    def test_wording(self):
        for text in ("TO" "DO: later", "FIX" "ME", "see /wo" "rk/shared", "in /t" "mp/x", "as issu" "e 12 says"):
            self.expect_caught("src/base/a.cpp", f"// {text}\n")
            self.assertEqual(self.found({"docs/a.md": f"one\n{text}\n"})[0], [("docs/a.md", 2)])
        for text in ("the working set", "https://example.org/work/x", "mkdtemp XXXXXX", "${prefix}/work/x", "a/tmp/b"):
            self.expect_clean("src/base/a.cpp", f"// {text}\n")

    def test_documents_name_paths_that_exist(self):
        text = ("`src/base/a.cpp` `src/base/` `src/base/NAME.cpp` `src/base/*.h` `include/ingot/…` `tests/NAME_fuzz.cpp`\n"
                "`src/gone/a.cpp`\n`src/base/b.cpp`\n`src/gone/NAME.cpp`\n")
        files = {"README.md": text, "src/base/a.cpp": SPDX, "include/ingot/a.h": SPDX, "tests/a.h": SPDX}
        self.assertEqual(self.found(files)[0], [("README.md", 2), ("README.md", 3), ("README.md", 4)])

    def test_a_path_git_does_not_know_does_not_exist(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "init", "-q", folder], check=True)
            Path(folder, "src", "empty").mkdir(parents=True)
            Path(folder, "README.md").write_text("`src/empty`\n", encoding="utf-8")
            self.assertEqual([name for name, _, _ in rules.check(folder)[0]], ["README.md"])

    def test_data_recorded_elsewhere_is_not_read(self):
        text = "FIX" "ME\n"
        self.assertEqual(self.found({"tests/data/a.json": text, "tests/fuzz/corpus/trace/a.json": text}), ([], []))
        self.assertEqual(self.found({"tests/golden/expected/a.json": text})[0], [("tests/golden/expected/a.json", 1)])


if __name__ == "__main__":
    unittest.main()
