import pytest

from tests.support.postgres import Postgres


def test_each_test_has_a_database_of_its_own(postgres: Postgres) -> None:
    mine, yours = postgres.create_database(), postgres.create_database()
    postgres.psql("create table t (n int)", mine)
    with pytest.raises(RuntimeError, match="does not exist"):
        postgres.psql("select * from t", yours)
    postgres.drop_database(mine)
    postgres.drop_database(yours)


def test_an_ended_server_starts_again_with_its_data() -> None:
    with Postgres(durable=True) as server:
        server.psql("create table t (n int); insert into t values (1), (2)")
        server.kill()
        server.start()
        server.stop()
        server.start()
        assert server.psql("select n, n * 10 from t") == "1|10\n2|20"
        assert server.psql("show fsync") == "on"
